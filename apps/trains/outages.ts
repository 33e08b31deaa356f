import { IndeterminateError, UnavailableError } from 'signalbox'
import type { Clock } from './clock.js'
import type { Log } from './log/log.js'
import { reasonOf } from './worker/failure.js'

/** How long the engine is left alone between two tries while it is unreachable, in milliseconds. */
const PAUSE = 200

/** Waits while the engine is unreachable, so that a server that is restarted costs time and nothing else. */
export class Outages {
  readonly #patience: number
  readonly #log: Log
  readonly #clock: Clock
  /** When the engine began to be unreachable; undefined while it isn't. */
  #since: number | undefined

  /** @param patience how long an engine that is unreachable is waited for, in milliseconds. */
  constructor(patience: number, log: Log, clock: Clock) {
    this.#patience = patience
    this.#log = log
    this.#clock = clock
  }

  /**
   * Retries a task while the engine is unreachable, but not for longer than the patience allows. It may have been
   * executed although it failed, so doing it twice must be harmless.
   * @throws what the task throws: at once when it is anything else, and in the end also what the engine's absence
   * throws
   */
  async retryDuringOutage<Result>(task: () => Promise<Result>): Promise<Result> {
    let own: number | undefined
    for (;;) {
      try {
        const result = await task()
        if (this.#since !== undefined) this.#log.info('engine is back')
        this.#since = undefined
        return result
      } catch (error) {
        if (!isOutage(error)) throw error
        const now = this.#clock.now()
        own ??= now
        if (this.#since === undefined) this.#log.warn('engine unreachable', { reason: reasonOf(error) })
        this.#since ??= now
        // What keeps failing by itself while others go through has its own end.
        if (now - Math.min(own, this.#since) >= this.#patience) throw error
        await this.#clock.sleep(PAUSE)
      }
    }
  }
}

/** Whether an error says that the engine could not be reached, and nothing about the call itself. */
function isOutage(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
