import type { Clock, Timer } from '../../base/clock.js'
import type { LimiterState } from '../limits/reserve-permits.js'

/** The pause between two sweeps, plus a pause for each limiter, in milliseconds, so that sweeps cost almost nothing. */
const MIN_PAUSE = 1000
const PAUSE_EACH = 0.01

/** The states of limiters by name, in variables. A state is deleted some time after it has lost its effect. */
export class MemoryLimits {
  readonly #known = new Map<string, { readonly state: LimiterState; readonly until: number }>()
  readonly #clock: Clock
  #sweeper: Timer | undefined
  /** When the next state can be deleted: clock time. */
  #earliest = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** All states, with the times until which they have an effect. */
  *entries(): Generator<readonly [name: string, state: LimiterState, until: number]> {
    for (const [name, { state, until }] of this.#known) yield [name, state, until]
  }

  names(): string[] {
    return [...this.#known.keys()]
  }

  clear(): void {
    this.#known.clear()
  }

  get(name: string): LimiterState | undefined {
    return this.#known.get(name)?.state
  }

  /** @param until when the state has no effect any more: clock time. */
  set(name: string, state: LimiterState, until: number): void {
    this.#known.set(name, { state, until })
    if (until < this.#earliest) this.#sweepAfter(until)
  }

  #sweepAfter(time: number): void {
    this.#sweeper?.cancel()
    this.#earliest = time
    if (time === Infinity) return
    const pause = MIN_PAUSE + this.#known.size * PAUSE_EACH
    const delay = Math.max(time - this.#clock.now(), pause)
    this.#sweeper = this.#clock.after(delay, () => this.#sweep(), false)
  }

  #sweep(): void {
    const now = this.#clock.now()
    let earliest = Infinity
    for (const [name, { until }] of this.#known) {
      if (until <= now) this.#known.delete(name)
      else earliest = Math.min(earliest, until)
    }
    this.#sweepAfter(earliest)
  }
}
