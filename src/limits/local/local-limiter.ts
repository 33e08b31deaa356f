import { systemClock, wallOf, type Clock } from '../../base/clock.js'
import type { Duration } from '../../base/duration.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { closeAll, drainOf, type LimiterCloseOptions } from '../closing.js'
import { WaitingLimiter } from './waiting-limiter.js'
import { LocalPermits } from './local-permits.js'
import { Keys } from './keys.js'
import {
  checkedOptions,
  rulesOf,
  withLimit,
  type CheckedOptions,
  type LimiterOptions,
} from '../limit-options.js'
import type { Limiter } from '../limiter.js'
import { LimiterErrors } from '../limiter-errors.js'
import type { Rules } from '../counter.js'
import { PermitCounter } from './permit-counter.js'
import { Times } from '../times.js'

/** A limiter of this thread, and one for each key. */
export class LocalLimiter extends WaitingLimiter implements AsyncDisposable {
  protected readonly permits: LocalPermits
  readonly #keys: Keys
  readonly #clock: Clock
  #options: CheckedOptions
  readonly #rules: Rules
  #closed = false

  /** Use `limiter`. @param readWall returns milliseconds since 1970. */
  constructor(options: CheckedOptions, clock: Clock, readWall: () => number) {
    super()
    this.#clock = clock
    this.#options = options
    const rules = (this.#rules = rulesOf(options))
    const times = new Times(rules.windows, clock, readWall)
    const make = (key?: string): LocalPermits => {
      const errors = new LimiterErrors(undefined, key)
      const permits = new LocalPermits(rules, times, new PermitCounter(rules, times), errors)
      if (this.#closed) permits.shut()
      return permits
    }
    this.permits = make()
    this.#keys = new Keys(make, clock, Math.max(...rules.windows.map(({ per }) => per)))
  }

  /**
   * Returns the limiter of one key, which has the same limits and counts separately. It takes memory only while it is
   * in use, and for a window or two afterwards.
   * @throws InvalidArgumentError
   */
  key(key: string): Limiter {
    return this.#keys.limiter(key)
  }

  /**
   * Changes a limit, for all keys, from now on. Permits that were granted before still count. A waiter that wants more
   * permits than the new limit is rejected with an InvalidArgumentError; the others keep waiting.
   * @param per selects one of several limits.
   * @throws InvalidArgumentError
   */
  setLimit(limit: number, per?: Duration): void {
    this.#options = withLimit(this.#options, limit, per)
    this.#rules.windows = rulesOf(this.#options).windows
    for (const permits of this.#all()) permits.limitsChanged()
  }

  /**
   * Grants no more permits. Waiters are rejected with a ClosedError, unless `drain` serves them first. Resolves when no
   * waiter is left. A second call waits for the first one.
   * @throws InvalidArgumentError
   */
  async close(options: LimiterCloseOptions = {}): Promise<void> {
    const drain = drainOf(options)
    this.#closed = true
    this.#keys.close()
    const all = [...this.#all()]
    for (const permits of all) permits.shut()
    await closeAll(all, drain, this.#clock)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #all(): LocalPermits[] {
    return [this.permits, ...this.#keys.all()]
  }
}

/**
 * Creates a limiter of this thread. It is exact in any window, serves callers in order, and decides within the call.
 * @throws InvalidArgumentError
 */
export function limiter(options: LimiterOptions): LocalLimiter {
  const checked = checkedOptions(options)
  const { clock = systemClock } = options
  checkClock(clock)
  return new LocalLimiter(checked, clock, wallOf(clock))
}

function checkClock(clock: Partial<Clock> | null): void {
  if (typeof clock?.now !== 'function' || typeof clock.after !== 'function') {
    throw new InvalidArgumentError(`clock must be a clock such as a VirtualClock, not ${shown(clock)}`)
  }
}
