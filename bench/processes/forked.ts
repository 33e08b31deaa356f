import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { now } from '../clock.js'
import { overtaken } from '../overtaking.js'
import { concatenated } from '../wait-log.js'
import type { Contender, GrowthPoint, Place, Sample, Subject } from '../work.js'
import type { Answer, Order, Performance, Prepare, Window } from './performer.js'

/** A subject in its own processes, so that code and garbage of other subjects do not affect its figures. */
export interface ForkedSubject extends Subject {
  readonly prepare: Prepare
}

interface ForkedOptions {
  readonly processes?: number
  /** Starts what the processes need, such as a server. Returns a function that stops it. */
  readonly support?: ((folder: string) => Promise<() => Promise<void>>) | undefined
  /** Minimum duration of the warm-up, in seconds. */
  readonly warmUp?: number | undefined
  readonly growth?: GrowthPoint | undefined
}

/**
 * Time between the order to perform and the start of the window, in milliseconds. All processes must receive the order.
 */
const HEAD_START = 20
/**
 * Maximum time from the end of a window to its results, and from the start of a process until it is ready, in
 * milliseconds. A later process has failed.
 */
const PATIENCE = 120_000
/** Time after which a process that does not stop when asked is killed, in milliseconds. */
const FAREWELL = 20_000

const PARTICIPANT = fileURLToPath(new URL('./participant.process.js', import.meta.url))

/** Makes a subject in its own processes. @param prepare is called in each of the processes. */
export function forked(name: string, prepare: Prepare, options: ForkedOptions = {}): ForkedSubject {
  const { processes = 1, support, warmUp, growth } = options
  return {
    name,
    prepare,
    warmUp,
    growth,
    async start(place) {
      const end = await support?.(place.folder)
      const participants: Participant[] = []
      const contender = new ForkedContender(participants, end)
      try {
        for (let index = 0; index < processes; index++) {
          participants.push(await Participant.start(place, index, processes))
        }
        return contender
      } catch (error) {
        await contender.stop()
        throw error
      }
    },
  }
}

class ForkedContender implements Contender {
  readonly #participants: readonly Participant[]
  readonly #end: (() => Promise<void>) | undefined

  constructor(participants: readonly Participant[], end: (() => Promise<void>) | undefined) {
    this.#participants = participants
    this.#end = end
  }

  async measure(milliseconds: number): Promise<Sample> {
    const startAt = now() + HEAD_START
    const window = { startAt, endAt: startAt + milliseconds }
    const performances = await Promise.all(this.#participants.map(one => one.perform(window)))
    return sampleOf(window, performances)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#participants.map(one => one.stop()))
    await this.#end?.()
  }
}

function sampleOf({ startAt, endAt }: Window, performances: readonly Performance[]): Sample {
  const perPart = performances.flatMap(({ operations, perBox }) => perBox ?? [operations])
  const connections = performances.reduce((sum, one) => sum + (one.connections ?? 0), 0)
  const waits = concatenated(performances.map(one => one.waits))
  const requested = performances.flatMap(one => (one.requested ? [one.requested] : []))
  return {
    operations: performances.reduce((sum, one) => sum + one.operations, 0),
    milliseconds: Math.max(...performances.map(one => one.doneAt ?? endAt)) - startAt,
    waits,
    perPart: perPart.length > 1 ? perPart : undefined,
    connections: connections === 0 ? undefined : connections,
    overtaken: requested.length === performances.length ? inOrder(concatenated(requested), waits) : undefined,
    broken: performances.find(one => one.broken !== undefined)?.broken,
  }
}

function inOrder(requested: Float64Array, waits: Float64Array): Float64Array {
  return overtaken(
    requested,
    requested.map((at, index) => at + waits[index]!),
  )
}

/** One process of a subject. */
class Participant {
  readonly #child: ChildProcess
  readonly #gone: Promise<void>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#gone = new Promise(resolve => child.once('exit', () => resolve()))
  }

  static async start(
    { work, subject, folder }: Place,
    process: number,
    processes: number,
  ): Promise<Participant> {
    const setting = JSON.stringify({ folder, process, processes })
    // Sends typed arrays without conversion.
    const child = fork(PARTICIPANT, [work, subject, setting], { serialization: 'advanced' })
    const participant = new Participant(child)
    try {
      await participant.#answer()
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
    return participant
  }

  async perform(window: Window): Promise<Performance> {
    const answer = this.#answer(window.endAt + PATIENCE - now())
    this.#child.send({ type: 'perform', window } satisfies Order)
    const performed = await answer
    if (performed.type !== 'performed') throw new Error(`a process answered ${performed.type}`)
    return performed.performance
  }

  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.send({ type: 'stop' } satisfies Order)
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), FAREWELL)
    await this.#gone
    clearTimeout(timer)
  }

  /** Waits for the next message of the process. @param limit maximum wait, in milliseconds. */
  #answer(limit = PATIENCE): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const child = this.#child
      const timer = setTimeout(() => {
        settle(() => reject(new Error(`a process did not answer within ${Math.round(limit / 1000)} s`)))
      }, limit)
      const settle = (task: () => void): void => {
        child.off('message', onMessage)
        child.off('exit', onExit)
        clearTimeout(timer)
        task()
      }
      const onMessage = (answer: unknown): void => {
        const { type } = answer as Answer
        settle(() => {
          if (type === 'failed') reject(new Error((answer as { message: string }).message))
          else resolve(answer as Answer)
        })
      }
      const onExit = (status: number | null, signal: string | null): void => {
        settle(() =>
          reject(new Error(`a process of the bench ended with ${signal ?? `status ${String(status)}`}`)),
        )
      }
      child.once('message', onMessage)
      child.once('exit', onExit)
    })
  }
}
