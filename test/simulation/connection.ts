import type { Engine, Listener, SessionInfo, Operation, OutcomeOf } from '../../src/engine/contract.js'
import type { Guarantees } from '../../src/base/guarantees.js'
import type { Climate } from './climate.js'
import type { History } from './history.js'
import type { ObservedTable } from './observed-table.js'
import type { SimulatedProcess } from './process.js'
import type { Random } from './random.js'
import type { Hint, Peer, Server } from './server.js'
import type { Sources } from './sources.js'
import type { Timeline } from './timeline.js'

const guarantees: Guarantees = {
  engine: 'simulated',
  scope: 'network',
  deadHolder: 'lease',
  durability: 'process',
  weaknesses: [],
}

/** The fate of the messages that a process sends in one step. All of them have the same fate. */
interface Trip {
  readonly step: number
  readonly fate: 'arrives' | 'request lost' | 'reply lost' | 'refused'
  readonly there: number
  readonly back: number
}

/** Probability that a box sends signs of life. */
const SIGNING = 0.75

/** Time until a waiter checks in again after a failure, in milliseconds. */
const PAUSE = 200

/** The parts of a simulation that a connection needs. */
export interface Surroundings {
  readonly timeline: Timeline
  readonly history: History
  readonly server: Server
  readonly table: ObservedTable
  readonly sources: Sources
  /** Returns the current climate of the network. */
  readonly climate: () => Climate
}

/** The engine as one process sees it: through a network with faults, or directly, in the same thread. */
export class Connection implements Engine, Peer {
  readonly name: string
  readonly guarantees = guarantees
  readonly reportsContention: boolean
  /** Whether the box sends signs of life instead of heartbeats of its requests. */
  readonly coversBySigns: boolean
  /** Whether messages that are still under way to the server are lost. */
  severed = false
  readonly #process: SimulatedProcess
  readonly #random: Random
  readonly #around: Surroundings
  readonly #direct: boolean
  readonly #pending = new Set<(error: Error) => void>()
  #listener: Listener | undefined
  #session = ''
  #left = false
  #trip: Trip | undefined
  #lastThere = 0
  #lastBack = 0

  constructor(process: SimulatedProcess, random: Random, around: Surroundings) {
    this.name = process.name
    this.#process = process
    this.#random = random
    this.#around = around
    this.#direct = around.climate().kind === 'direct'
    this.reportsContention = this.#direct
    this.coversBySigns = random.chance(SIGNING)
  }

  join(member: SessionInfo, listener: Listener): Promise<void> | void {
    const { server, history } = this.#around
    this.#session = this.#process.session = member.session
    this.#listener = listener
    history.name(member.session, this.name)
    if (this.#direct) return void server.join(member, this)
    return this.#request(
      'join',
      () => void server.join(member, this),
      () => {},
    )
  }

  submit<O extends Operation>(operation: O): OutcomeOf<O> | Promise<OutcomeOf<O>> {
    const { server } = this.#around
    if (this.#left) return Promise.reject(this.#unavailable('the connection is closed'))
    if (this.#direct) {
      if (!server.knows(this.#session)) return Promise.reject(this.#unavailable('the session has ended'))
      return server.execute(this.#session, operation).outcome
    }
    return this.#request(
      operation.type,
      () => (server.knows(this.#session) ? server.execute(this.#session, operation) : undefined),
      answer => {
        if (!answer) throw this.#unavailable('the session has ended')
        for (const key of answer.reserved) this.#listener!.reserved(key)
        return answer.outcome
      },
    )
  }

  async leave(): Promise<void> {
    const { server } = this.#around
    this.#left = true
    if (this.#direct) server.leave(this.#session)
    else {
      await this.#request(
        'leave',
        () => server.leave(this.#session),
        () => {},
      ).catch(() => undefined)
      for (const fail of [...this.#pending]) fail(this.#indeterminate('the connection was closed'))
    }
  }

  /**
   * Ends the session, as the engine may do. Its requests do not wait for the ends of their leases, and its box is
   * notified.
   */
  expel(): void {
    this.#around.server.leave(this.#session)
    const end = (): void => this.#listener!.ended(this.#unavailable('the engine has ended the session'))
    if (this.#direct) end()
    else this.#deliver(this.#arrivalBack(this.#delay()), end)
  }

  contended(id: string): void {
    if (this.#direct) this.#listener!.contended(id)
  }

  hint({ type, id }: Hint): void {
    const { table } = this.#around
    const tell = (): void => {
      if (type === 'wake') table.woken(id)
      this.#listener![type](id)
    }
    if (this.#direct) return this.#process.deliver(tell)
    const climate = this.#around.climate()
    if (this.#random.chance(climate.lostHints) || this.#cut) return
    const times = this.#random.chance(climate.repeatedHints) ? 2 : 1
    for (let time = 0; time < times; time++) {
      const delay = this.#delay()
      this.#deliver(climate.hintsInOrder ? this.#arrivalBack(delay) : this.#around.timeline.now + delay, tell)
    }
  }

  get #cut(): boolean {
    return this.#around.timeline.now < this.#process.cutUntil
  }

  /** Sends a request, executes it on the server, and settles with the result of `received` for the answer. */
  #request<A, R>(what: string, execute: () => A, received: (answer: A) => R): Promise<R> {
    const { timeline, history } = this.#around
    const trip = this.#together()
    if (trip.fate !== 'arrives') history.note(this.name, `${what}: ${trip.fate}`)
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        if (!this.#pending.delete(fail)) return
        timer.cancel()
        how()
      }
      const fail = (error: Error): void => settle(() => reject(error))
      this.#pending.add(fail)
      const timer = this.#process.clock.after(
        this.#around.climate().timeout,
        () => {
          this.#process.troubled(timeline.now + PAUSE)
          fail(this.#indeterminate(`no answer to ${what}`))
        },
        true,
      )
      if (trip.fate === 'refused') {
        this.#deliver(this.#arrivalBack(trip.back), () => fail(this.#unavailable(`${what} was refused`)))
        return
      }
      if (trip.fate === 'request lost') return
      this.#lastThere = Math.max(this.#lastThere, timeline.now + trip.there)
      timeline.at(
        this.#lastThere,
        () => {
          if (this.severed) return
          const answer = execute()
          if (trip.fate === 'reply lost' || this.#cut) return
          this.#deliver(this.#arrivalBack(trip.back), () =>
            settle(() => {
              try {
                resolve(received(answer))
              } catch (error) {
                reject(error)
              }
            }),
          )
        },
        true,
      )
    })
  }

  #together(): Trip {
    const { timeline } = this.#around
    if (this.#trip?.step === timeline.steps) return this.#trip
    const random = this.#random
    const climate = this.#around.climate()
    const dice = random.next()
    const { lostRequests, lostReplies, refusals } = climate
    const fate = this.#cut
      ? random.pick(['request lost', 'refused'] as const)
      : dice < lostRequests
        ? 'request lost'
        : dice < lostRequests + lostReplies
          ? 'reply lost'
          : dice < lostRequests + lostReplies + refusals
            ? 'refused'
            : 'arrives'
    if (fate !== 'arrives') this.#process.troubled(timeline.now + climate.timeout + PAUSE)
    return (this.#trip = { step: timeline.steps, fate, there: this.#delay(), back: this.#delay() })
  }

  #delay(): number {
    const random = this.#random
    const { latency, jitter, spikes, longestSpike } = this.#around.climate()
    return latency + random.next() * jitter + (random.chance(spikes) ? random.next() * longestSpike : 0)
  }

  /** Returns the time at which a message arrives back. Replies arrive in the order in which they were sent. */
  #arrivalBack(delay: number): number {
    this.#lastBack = Math.max(this.#lastBack, this.#around.timeline.now + delay)
    return this.#lastBack
  }

  #deliver(at: number, task: () => void): void {
    this.#around.timeline.at(at, () => this.#process.deliver(task))
  }

  #unavailable(message: string): Error {
    return new this.#around.sources.UnavailableError(message, { engine: this.name })
  }

  #indeterminate(message: string): Error {
    return new this.#around.sources.IndeterminateError(message, { engine: this.name })
  }
}
