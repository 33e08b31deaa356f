import type { LimiterState } from '../../limits/reserve.js'

/** So many changes at least come between two looks for what can be forgotten. */
const LEAST_SWEPT = 1024

/** The state of limiters by name, in variables. */
export class MemoryLimits {
  readonly #known = new Map<string, { readonly state: LimiterState; readonly until: number }>()
  #changesToSweep = LEAST_SWEPT

  get(name: string): LimiterState | undefined {
    return this.#known.get(name)?.state
  }

  /** @param forgottenIn milliseconds from `now` after which it is as good as nothing. */
  set(name: string, state: LimiterState, now: number, forgottenIn: number): void {
    this.#known.set(name, { state, until: now + forgottenIn })
    if (--this.#changesToSweep > 0) return
    for (const [other, { until }] of this.#known) if (until <= now) this.#known.delete(other)
    this.#changesToSweep = Math.max(LEAST_SWEPT, this.#known.size)
  }
}
