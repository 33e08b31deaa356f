import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { now } from '../clock.js'
import { packageFile } from '../package.js'
import type { Contender, Sample, Subject } from '../work.js'

const TRACKER = packageFile('dist/apps/trains/main.js')
const OUTSIDER = fileURLToPath(new URL('./outsider.process.js', import.meta.url))
/** Number of messages of one day of the bundled timetable. */
const MESSAGES_A_DAY = 3321
/**
 * Approximate duration of a run, in seconds. The processes of the tracker start again for each run, while those of
 * other subjects keep running from round to round. A short run would mostly measure the compilation of its code.
 */
export const RUN_SECONDS = 20

/** The parts of the tracker's report that are used here. */
interface Report {
  readonly messages: number
  readonly seconds: number
  readonly perSecond: number
  readonly matchesSerial: boolean
  readonly perWorker: readonly { readonly messages: number }[]
}

/** The results of the outsider. */
interface Outside {
  readonly waits: Float64Array
  readonly times: Float64Array
}

/** The state of a run of the tracker. */
interface State {
  readonly engine: string
  /** Removes the state, so that the next run starts empty. */
  clear(): Promise<void>
}

/** Prepares the engine for the state of one run. */
export type MakeState = (folder: string) => Promise<State>

const inFolder: MakeState = async folder => {
  const state = join(folder, 'state')
  return { engine: `file:${state}`, clear: () => rm(state, { recursive: true, force: true }) }
}

/**
 * The train tracker with a number of workers, as `npm start` runs it. The waits are those of the outsider, a separate
 * process.
 */
export function tracker(processes: number, makeState: MakeState = inFolder): Subject {
  const name = processes === 1 ? '1 process' : `${processes} processes`
  return { name, start: async ({ folder }) => new Tracker(folder, processes, makeState) }
}

class Tracker implements Contender {
  readonly #folder: string
  readonly #processes: number
  readonly #makeState: MakeState
  #perSecond = 1000

  constructor(folder: string, processes: number, makeState: MakeState) {
    this.#folder = folder
    this.#processes = processes
    this.#makeState = makeState
  }

  async measure(milliseconds: number): Promise<Sample> {
    const days = Math.max(Math.round(((milliseconds / 1000) * this.#perSecond) / MESSAGES_A_DAY), 1)
    const { engine, clear } = await this.#makeState(this.#folder)
    const outsider = fork(OUTSIDER, [engine], { serialization: 'advanced' })
    try {
      await once(outsider, 'message')
      const { report, busyFrom, busyTo } = await this.#run(engine, days)
      this.#perSecond = report.perSecond
      const seen = once(outsider, 'message') as Promise<[Outside]>
      outsider.send('stop')
      const [{ waits, times }] = await seen
      return {
        operations: report.messages,
        milliseconds: (report.messages / report.perSecond) * 1000,
        waits: waits.filter((wait, index) => times[index]! + wait > busyFrom && times[index]! < busyTo),
        perPart: report.perWorker.map(({ messages }) => messages),
        broken: report.matchesSerial ? undefined : 'the locations are not as the serial result says',
      }
    } finally {
      outsider.kill('SIGKILL')
      await clear()
    }
  }

  async stop(): Promise<void> {
    // Nothing to stop: every run ends by itself.
  }

  async #run(engine: string, days: number): Promise<{ report: Report; busyFrom: number; busyTo: number }> {
    const json = join(this.#folder, 'report.json')
    const argv = [
      '--engine',
      engine,
      '--processes',
      String(this.#processes),
      '--days',
      String(days),
      '--json',
      json,
    ]
    const deadLetters = join(this.#folder, 'dead-letters.ndjson')
    const child = spawn(process.execPath, [TRACKER, ...argv, '--dead-letters', deadLetters], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    // The tracker prints its settings before it starts, and its results at the end.
    let busyFrom = Infinity
    let busyTo = Infinity
    child.stdout.on('data', () => {
      busyFrom = Math.min(busyFrom, now())
      busyTo = now()
    })
    const [status] = (await once(child, 'close')) as [number | null]
    if (status !== 0 && status !== 1) throw new Error(`the train tracker ended with status ${String(status)}`)
    return { report: JSON.parse(await readFile(json, 'utf8')) as Report, busyFrom, busyTo }
  }
}
