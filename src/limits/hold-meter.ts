/** The measure of a while is forgotten when two such are over: milliseconds. */
const WHILE = 2000
/** So much longer than what was measured: what comes next may take a little longer. */
const MARGIN = 1.15
/** One stall is no reason for a hold as long: each time it grows so many times at the most. */
const GROWTH = 8
/** An engine that is farther away gives permits that are over when they come: milliseconds. */
const MOST = 2000

/**
 * For how long permits have to be usable so that they are used, as a process sees it: from the earliest moment at which
 * one can have begun to be usable, by what is known of the engine's clock, until it is given to its caller. That is the
 * way of question and answer, and what the event loop is late. The greatest of a while counts, and a little more.
 */
export class HoldMeter {
  #before = 0
  #current = 0
  /** When the while began: clock time. */
  #since = -Infinity

  /**
   * @param taken milliseconds, which were too many if they are more than the hold.
   * @param hold for which it was asked: milliseconds.
   * @param now clock time.
   */
  note(taken: number, hold: number, now: number): void {
    if (now - this.#since > WHILE) {
      this.#before = this.#current
      this.#current = 0
      this.#since = now
    }
    this.#current = Math.max(this.#current, Math.min(taken, GROWTH * hold))
  }

  /** Whole milliseconds, so that times keep their exactness. @param most milliseconds. */
  hold(most = MOST): number {
    return Math.min(Math.ceil(Math.max(this.#before, this.#current) * MARGIN), MOST, most)
  }
}
