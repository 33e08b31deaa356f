/** Maximum drift between two good clocks, as a part of the time: both may be slewed. */
const DRIFT = 1e-3

/**
 * Bounds the offset between the clocks of an engine and of this process. Each reply shows that a moment of the engine's
 * clock was between two moments of the own clock. Quick replies give narrower bounds, which also apply to the next
 * replies, because clocks drift slowly.
 */
export class ClockOffset {
  /** Lower and upper bound of the own time minus the engine's. */
  #min = -Infinity
  #max = Infinity
  /** The own time of the newest reply. */
  #learnedAt = -Infinity

  /** Returns the own times between which `moment` of the engine's clock was, at least as narrow as the reply shows. */
  learn(moment: number, earliest: number, latest: number): readonly [earliest: number, latest: number] {
    const drift = this.#learnedAt === -Infinity ? 0 : Math.max(latest - this.#learnedAt, 0) * DRIFT
    const min = this.#min - drift
    const max = this.#max + drift
    // If they contradict each other, a clock was set, or another server replies.
    const agree = min <= latest - moment && earliest - moment <= max
    this.#min = agree ? Math.max(min, earliest - moment) : earliest - moment
    this.#max = agree ? Math.min(max, latest - moment) : latest - moment
    this.#learnedAt = latest
    return [moment + this.#min, moment + this.#max]
  }
}
