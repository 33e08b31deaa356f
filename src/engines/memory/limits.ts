import type { Clock, Timer } from '../../clock.js'
import type { LimiterState } from '../../limits/rules/reserve.js'

/** Between two looks for what can be forgotten: milliseconds, and so many more for each limiter, so that they cost next to nothing. */
const LEAST_PAUSE = 1000
const PAUSE_EACH = 0.01

/** The state of limiters by name, in variables. What nobody uses is forgotten a while after it has no effect any more. */
export class MemoryLimits {
  readonly #known = new Map<string, { readonly state: LimiterState; readonly until: number }>()
  readonly #clock: Clock
  #sweeper: Timer | undefined
  /** When there is something to be forgotten for the next look: clock time. */
  #earliest = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(name: string): LimiterState | undefined {
    return this.#known.get(name)?.state
  }

  /** @param until clock time after which it is as good as nothing. */
  set(name: string, state: LimiterState, until: number): void {
    this.#known.set(name, { state, until })
    if (until < this.#earliest) this.#sweepAfter(until)
  }

  #sweepAfter(time: number): void {
    this.#sweeper?.cancel()
    this.#earliest = time
    if (time === Infinity) return
    const pause = LEAST_PAUSE + this.#known.size * PAUSE_EACH
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
