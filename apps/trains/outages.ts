import { IndeterminateError, UnavailableError } from 'signalbox'
import type { Clock } from './clock.js'
import type { Log } from './log/log.js'
import { reasonOf } from './reason.js'
import { RunAbortedError } from './worker/failure.js'

/** Pause between two tries while the engine is unreachable, in milliseconds. */
const PAUSE = 200

/** Retries tasks while the engine is unreachable, so that a restart of its server only delays them. */
export class Outages {
  readonly #maxOutage: number
  readonly #log: Log
  readonly #clock: Clock
  /** Time at which the engine became unreachable, in milliseconds; undefined while it is reachable. */
  #since: number | undefined

  /** @param maxOutage maximum time to wait for an unreachable engine, in milliseconds. */
  constructor(maxOutage: number, log: Log, clock: Clock) {
    this.#maxOutage = maxOutage
    this.#log = log
    this.#clock = clock
  }

  /**
   * Retries a task while the engine is unreachable, for at most `maxOutage`. A try that failed may have taken effect,
   * so the task must be safe to repeat.
   * @param ping rejects if the engine is unreachable. Without it, the engine is assumed to be unreachable after
   * `maxOutage`.
   * @throws RunAbortedError if the engine is still unreachable after `maxOutage`; the task's error if the engine is
   * reachable then; any other error of the task at once.
   */
  async retryDuringOutage<Result>(
    task: () => Promise<Result>,
    ping: () => Promise<unknown> = () => Promise.reject(new Error('not opened')),
  ): Promise<Result> {
    let own: number | undefined
    for (;;) {
      try {
        const result = await task()
        this.#reached()
        return result
      } catch (error) {
        if (!isOutage(error)) throw error
        const now = this.#clock.now()
        own ??= now
        if (this.#since === undefined) this.#log.warn('engine unreachable', { reason: reasonOf(error) })
        this.#since ??= now
        if (now - Math.min(own, this.#since) < this.#maxOutage) {
          await this.#clock.sleep(PAUSE)
          continue
        }
        await ping().catch(() => {
          const what = `the engine was unreachable for ${this.#maxOutage} ms: ${reasonOf(error)}`
          throw new RunAbortedError(what, { cause: error })
        })
        // The engine is reachable, but this task still fails: for example, a value may be damaged.
        this.#reached()
        throw error
      }
    }
  }

  #reached(): void {
    if (this.#since !== undefined) this.#log.info('engine reachable')
    this.#since = undefined
  }
}

/** Whether an error is due to an unreachable engine, and not to the call itself. */
function isOutage(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
