/** Minimum length of a period of measurements, in milliseconds. Two periods are kept. */
const PERIOD = 2000
/** The hold exceeds the measurement by this factor, because the next reply may take a little longer. */
const MARGIN = 1.15
/** Maximum hold, in milliseconds. If the engine is farther away, its permits can't be used in time. */
const MAX_HOLD = 2000

/**
 * Estimates the hold that this process needs: the time for which a permit must be usable, so that its caller gets it in
 * time. A measurement is the time from the earliest moment at which a permit may have become valid, by the bounds on
 * the engine's clock, to its use. It includes the latency of the network and the delay of the event loop.
 *
 * The hold is the second longest measurement of each of the last two periods, whichever is greater, plus a margin. The
 * longest of a period is ignored, because it may come from a pause that does not recur. That costs the permits of that
 * moment. A hold as long as the pause would cost more, because it lengthens the window of each permit in the next
 * seconds. If neither period has two measurements, the longest is used. A measurement begins each period, so after a
 * time without measurements the older period may be arbitrarily old.
 */
export class LatencyEstimator {
  #before = new Delays()
  #current = new Delays()
  /** Clock time at which the current period began. */
  #since = -Infinity

  /** @param taken milliseconds. @param now clock time. */
  note(taken: number, now: number): void {
    if (now - this.#since > PERIOD) {
      this.#before = this.#current
      this.#current = new Delays()
      this.#since = now
    }
    this.#current.note(taken, now)
  }

  /** Whether there is a measurement. Without one, `hold` returns 0. */
  get hasMeasured(): boolean {
    return this.#since > -Infinity
  }

  /** Returns the hold in whole milliseconds, so that sums of times stay exact. @param max milliseconds. */
  hold(max = MAX_HOLD): number {
    const repeated = Math.max(this.#before.second, this.#current.second)
    const taken = repeated >= 0 ? repeated : Math.max(this.#before.greatest, this.#current.greatest, 0)
    return Math.min(Math.ceil(taken * MARGIN), MAX_HOLD, max)
  }
}

/** The delays of one period. Overlapping delays count as one, because they have the same cause. */
class Delays {
  /** The greatest and the second greatest of the past delays; -Infinity for none. */
  #first = -Infinity
  #next = -Infinity
  /** The newest delay, and the clock time at which it was first measured. */
  #newest = -Infinity
  #end = -Infinity

  note(taken: number, now: number): void {
    if (now - taken < this.#end) {
      this.#newest = Math.max(this.#newest, taken)
      return
    }
    this.#next = this.second
    this.#first = this.greatest
    this.#newest = taken
    this.#end = now
  }

  /** The greatest delay; -Infinity if there is none. */
  get greatest(): number {
    return Math.max(this.#first, this.#newest)
  }

  /** The second greatest delay; -Infinity if there are fewer than two. */
  get second(): number {
    return Math.max(this.#next, Math.min(this.#first, this.#newest))
  }
}
