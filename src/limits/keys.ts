import type { Clock } from '../clock.js'
import { checkKey } from '../locks/claim.js'
import type { Explanation, Gate } from './gate.js'
import type { AcquireOptions } from './limit-options.js'
import type { Limiter } from './limiter.js'
import type { Permit } from './permit.js'

/** So many keys are looked at without a pause. */
const SLICE = 2000

/** A gate for each key that is in use. One that is as if it had never been used is forgotten after its window. */
export class Keys {
  readonly #gates = new Map<string, Gate>()
  readonly #make: (key: string) => Gate
  readonly #clock: Clock
  readonly #interval: number
  #sweeping = false

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
      this.#gates.set(key, gate)
      if (!this.#sweeping) this.#sweepIn(this.#interval)
    }
    return gate
  }

  /** All gates there are. */
  all(): Iterable<Gate> {
    return this.#gates.values()
  }

  #sweepIn(delay: number): void {
    this.#sweeping = true
    this.#clock.after(delay, () => this.#sweep(this.#gates.entries(), this.#gates.size), false)
  }

  /** Forgets unused keys, some thousand at a time. */
  #sweep(entries: Iterator<[string, Gate]>, left: number): void {
    for (let looked = 0; looked < SLICE && left > 0; looked++, left--) {
      const next = entries.next()
      if (next.done) break
      const [key, gate] = next.value
      if (gate.blank) this.#gates.delete(key)
    }
    if (left > 0) this.#clock.after(0, () => this.#sweep(entries, left), false)
    else if (this.#gates.size > 0) this.#sweepIn(this.#interval)
    else this.#sweeping = false
  }
}

/** The limiter of one key. It holds nothing but the key, so it can be kept for ever while the count is forgotten. */
class KeyLimiter implements Limiter {
  readonly #keys: Keys
  readonly #key: string

  constructor(keys: Keys, key: string) {
    this.#keys = keys
    this.#key = key
  }

  tryAcquire(n?: number): Permit | undefined {
    return this.#gate.tryAcquire(n)
  }

  acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    return this.#gate.acquire(n, options)
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T> {
    return this.#gate.run(task, n, options)
  }

  explain(n?: number): Explanation {
    return this.#gate.explain(n)
  }

  pauseUntil(time: Date | number): void {
    this.#gate.pauseUntil(time)
  }

  get #gate(): Gate {
    return this.#keys.gate(this.#key)
  }
}
