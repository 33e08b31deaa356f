/** By how much two clocks that both run well can drift apart, as a part of the time: both may be slewed. */
const DRIFT = 1e-3

/**
 * What is known of an engine's clock relative to this process's own. Each answer shows that a moment of the engine's
 * clock lay between two of its own. A quick answer shows that more exactly than one for which this process had no time.
 * Clocks do not drift apart so fast that it would not hold for the next answers, too.
 */
export class ClockOffset {
  /** Lower and upper bound of own time minus the engine's. */
  #least = -Infinity
  #most = Infinity
  /** Own time of the newest answer. */
  #learnedAt = -Infinity

  /** The own times between which `moment` of the engine's clock was, as an answer shows, or better. */
  learn(moment: number, earliest: number, latest: number): readonly [earliest: number, latest: number] {
    const drift = this.#learnedAt === -Infinity ? 0 : Math.max(latest - this.#learnedAt, 0) * DRIFT
    const least = this.#least - drift
    const most = this.#most + drift
    // Where they contradict each other, a clock was set, or another server answers.
    const agree = least <= latest - moment && earliest - moment <= most
    this.#least = agree ? Math.max(least, earliest - moment) : earliest - moment
    this.#most = agree ? Math.min(most, latest - moment) : latest - moment
    this.#learnedAt = latest
    return [moment + this.#least, moment + this.#most]
  }
}
