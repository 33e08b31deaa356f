import { systemClock, wallOf, type Clock, type Timer } from '../../base/clock.js'
import type { Duration } from '../../base/duration.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkKey } from '../../base/options.js'
import { closeAll, drainOf, type LimiterCloseOptions } from '../closing.js'
import { WaitingLimiter } from './waiting-limiter.js'
import { LocalPermits } from './local-permits.js'
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

/** Maximum number of keys that a sweep checks without a break. */
const SLICE = 2000

/** A limiter of this thread, and one for each key. */
export class LocalLimiter extends WaitingLimiter implements AsyncDisposable {
  readonly #own: LocalPermits
  /** The permits of each key that is in use. */
  readonly #byKey = new Map<string, LocalPermits>()
  readonly #times: Times
  #options: CheckedOptions
  readonly #rules: Rules
  /** The time between two sweeps for unused keys, in milliseconds. */
  readonly #interval: number
  /** The timer of the next sweep; undefined while there are no keys. */
  #sweeper: Timer | undefined
  #closed = false

  /** Use `limiter`. @param readWall returns milliseconds since 1970. */
  constructor(options: CheckedOptions, clock: Clock, readWall: () => number) {
    super()
    this.#options = options
    this.#rules = rulesOf(options)
    this.#times = new Times(this.#rules.windows, clock, readWall)
    this.#interval = Math.max(...this.#rules.windows.map(({ per }) => per))
    this.#own = this.#make()
  }

  protected get permits(): Omit<Limiter, 'run'> {
    return this.#own
  }

  /**
   * Returns the limiter of one key, which has the same limits and counts separately. It takes memory only while it is
   * in use, and for a window or two afterwards.
   * @throws InvalidArgumentError
   */
  key(key: string): Limiter {
    checkKey('key', key)
    return new KeyLimiter(() => this.#permitsOf(key))
  }

  /**
   * Changes a limit, for all keys, from now on. Permits that were granted before still count. A waiter that wants more
   * permits than the new limit is rejected with an InvalidArgumentError; the others keep waiting.
   * @param per selects one of several limits, together with the unit.
   * @throws InvalidArgumentError
   */
  setLimit(limit: number, per?: Duration, unit?: string): void {
    const { limits: before } = this.#options
    const { windows: known } = this.#rules
    this.#options = withLimit(this.#options, limit, per, unit)
    Object.assign(this.#rules, rulesOf(this.#options))
    // Other limits keep their pace.
    this.#rules.windows = this.#rules.windows.map((window, index) =>
      this.#options.limits[index] === before[index] ? known[index]! : window,
    )
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
    this.#sweeper?.cancel()
    const all = this.#all()
    for (const permits of all) permits.shut()
    await closeAll(all, drain, this.#times)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #all(): LocalPermits[] {
    return [this.#own, ...this.#byKey.values()]
  }

  #make(key?: string): LocalPermits {
    const counter = new PermitCounter(this.#rules, this.#times)
    const errors = new LimiterErrors(undefined, key)
    const permits = new LocalPermits(this.#rules, this.#times, counter, errors)
    // The permits of a key may be settled after it was dropped.
    if (key !== undefined) permits.successor = () => this.#permitsOf(key)
    if (this.#closed) permits.shut()
    return permits
  }

  #permitsOf(key: string): LocalPermits {
    let permits = this.#byKey.get(key)
    if (!permits) {
      permits = this.#make(key)
      // No sweep would drop it.
      if (this.#closed) return permits
      this.#byKey.set(key, permits)
      if (!this.#sweeper) this.#sweepLater()
    }
    return permits
  }

  #sweepLater(): void {
    this.#sweeper = this.#times.after(this.#interval, () => this.#sweep(this.#byKey.entries()), false)
  }

  /** Drops the keys whose state equals that of an unused one, 2,000 at a time. */
  #sweep(entries: Iterator<[string, LocalPermits], undefined>): void {
    for (let looked = 0; looked < SLICE; looked++) {
      const { value } = entries.next()
      if (!value) {
        this.#sweeper = undefined
        if (this.#byKey.size > 0) this.#sweepLater()
        return
      }
      if (value[1].blank) this.#byKey.delete(value[0])
    }
    this.#sweeper = this.#times.after(0, () => this.#sweep(entries), false)
  }
}

/** The limiter of one key. It finds its permits by each call, so users can keep it while its counts are dropped. */
class KeyLimiter extends WaitingLimiter {
  readonly #find: () => LocalPermits

  constructor(find: () => LocalPermits) {
    super()
    this.#find = find
  }

  protected get permits(): LocalPermits {
    return this.#find()
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
