import type { Clock, Timer } from '../../base/clock.js'
import { checkKey } from '../../base/options.js'
import type { LocalPermits } from './local-permits.js'
import { WaitingLimiter } from './waiting-limiter.js'
import type { Limiter } from '../limiter.js'

/** Maximum number of keys that a sweep checks without a break. */
const SLICE = 2000

/**
 * The permits of each key that is in use. A key whose state equals that of an unused one is dropped after its window.
 */
export class Keys {
  readonly #byKey = new Map<string, LocalPermits>()
  readonly #make: (key: string) => LocalPermits
  readonly #clock: Clock
  readonly #interval: number
  /** The timer of the next sweep for unused keys; undefined while there are no keys. */
  #sweeper: Timer | undefined
  #closed = false

  /** @param interval the time between two sweeps for unused keys, in milliseconds. */
  constructor(make: (key: string) => LocalPermits, clock: Clock, interval: number) {
    this.#make = make
    this.#clock = clock
    this.#interval = interval
  }

  /** @throws InvalidArgumentError for an invalid key. */
  limiter(key: string): Limiter {
    checkKey('key', key)
    return new KeyLimiter(this, key)
  }

  permits(key: string): LocalPermits {
    let permits = this.#byKey.get(key)
    if (!permits) {
      permits = this.#make(key)
      if (this.#closed) return permits
      this.#byKey.set(key, permits)
      if (!this.#sweeper) this.#sweepIn(this.#interval)
    }
    return permits
  }

  /** The permits of all keys. */
  all(): Iterable<LocalPermits> {
    return this.#byKey.values()
  }

  /** Stops the sweeps. Keys that are used for the first time after this are not kept. */
  close(): void {
    this.#closed = true
    this.#sweeper?.cancel()
  }

  #sweepIn(delay: number): void {
    const sweep = (): void => this.#sweep(this.#byKey.entries(), this.#byKey.size)
    this.#sweeper = this.#clock.after(delay, sweep, false)
  }

  /** Drops unused keys, 2,000 at a time. */
  #sweep(entries: Iterator<[string, LocalPermits]>, left: number): void {
    let looked = 0
    for (; looked < Math.min(left, SLICE); looked++) {
      const [key, permits] = (entries.next() as IteratorYieldResult<[string, LocalPermits]>).value
      if (permits.blank) this.#byKey.delete(key)
    }
    left -= looked
    if (left > 0) this.#sweeper = this.#clock.after(0, () => this.#sweep(entries, left), false)
    else if (this.#byKey.size > 0) this.#sweepIn(this.#interval)
    else this.#sweeper = undefined
  }
}

/** The limiter of one key. It has only the key, so users can keep it while its counts are dropped. */
class KeyLimiter extends WaitingLimiter {
  readonly #keys: Keys
  readonly #key: string

  constructor(keys: Keys, key: string) {
    super()
    this.#keys = keys
    this.#key = key
  }

  protected get permits(): LocalPermits {
    return this.#keys.permits(this.#key)
  }
}
