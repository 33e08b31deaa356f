import type { Clock, Timer } from '../../clock.js'
import { checkKey } from '../../options.js'
import type { Gate } from './gate.js'
import { GateLimiter } from './gate-limiter.js'
import type { Limiter } from '../limiter.js'

/** So many keys are looked at without a pause. */
const SLICE = 2000

/** A gate for each key that is in use. One that is as if it had never been used is forgotten after its window. */
export class Keys {
  readonly #gates = new Map<string, Gate>()
  readonly #make: (key: string) => Gate
  readonly #clock: Clock
  readonly #interval: number
  /** Of the next look for unused keys; undefined while there are no keys. */
  #sweeper: Timer | undefined
  #closed = false

  /** @param interval milliseconds after which a look for unused keys is worth while. */
  constructor(make: (key: string) => Gate, clock: Clock, interval: number) {
    this.#make = make
    this.#clock = clock
    this.#interval = interval
  }

  /** @throws InvalidArgumentError for an unfit key. */
  limiter(key: string): Limiter {
    checkKey('key', key)
    return new KeyLimiter(this, key)
  }

  gate(key: string): Gate {
    let gate = this.#gates.get(key)
    if (!gate) {
      gate = this.#make(key)
      if (this.#closed) return gate
      this.#gates.set(key, gate)
      if (!this.#sweeper) this.#sweepIn(this.#interval)
    }
    return gate
  }

  /** All gates there are. */
  all(): Iterable<Gate> {
    return this.#gates.values()
  }

  /** Keeps nothing for keys any more. */
  close(): void {
    this.#closed = true
    this.#sweeper?.cancel()
  }

  #sweepIn(delay: number): void {
    const sweep = (): void => this.#sweep(this.#gates.entries(), this.#gates.size)
    this.#sweeper = this.#clock.after(delay, sweep, false)
  }

  /** Forgets unused keys, some thousand at a time. */
  #sweep(entries: Iterator<[string, Gate]>, left: number): void {
    let looked = 0
    for (; looked < Math.min(left, SLICE); looked++) {
      const [key, gate] = (entries.next() as IteratorYieldResult<[string, Gate]>).value
      if (gate.blank) this.#gates.delete(key)
    }
    left -= looked
    if (left > 0) this.#sweeper = this.#clock.after(0, () => this.#sweep(entries, left), false)
    else if (this.#gates.size > 0) this.#sweepIn(this.#interval)
    else this.#sweeper = undefined
  }
}

/** The limiter of one key. It holds nothing but the key, so it can be kept for ever while the count is forgotten. */
class KeyLimiter extends GateLimiter {
  readonly #keys: Keys
  readonly #key: string

  constructor(keys: Keys, key: string) {
    super()
    this.#keys = keys
    this.#key = key
  }

  protected get gate(): Gate {
    return this.#keys.gate(this.#key)
  }
}
