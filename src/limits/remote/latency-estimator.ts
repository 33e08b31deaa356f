/**
 * Length of the periods by which measurements are kept, in milliseconds. A period is dropped when two more have passed.
 */
const WHILE = 2000
/** The hold is longer than the measure by this factor, because the next answer may take a little longer. */
const MARGIN = 1.15
/** The permits of an engine that is farther away are over when they come, in milliseconds. */
const MAX_HOLD = 2000

/**
 * Measures how long a hold this process needs: for how long a permit must be usable so that its caller gets it in time.
 * One measure is the time from the earliest moment at which a permit can have begun to be usable, by what is known of
 * the engine's clock, to its use. It contains the way of the call and its answer, and the delay of the event loop.
 *
 * The hold is the second longest measure of the last two to four seconds, and a little more. The longest is left out:
 * it may come from a stop that does not recur. That costs the permits of that time. A hold as long as that would cost
 * more, because it lengthens the window of each permit of the next seconds. A single measure counts until there is
 * another one.
 */
export class LatencyEstimator {
  #before = new Delays()
  #current = new Delays()
  /** When the present period began: clock time. */
  #since = -Infinity

  /** @param taken milliseconds. @param now clock time. */
  note(taken: number, now: number): void {
    if (now - this.#since > WHILE) {
      this.#before = this.#current
      this.#current = new Delays()
      this.#since = now
    }
    this.#current.note(taken, now)
  }

  /** Whether there is a measure. Without one nothing is known of the way, and `hold` gives 0. */
  get hasMeasured(): boolean {
    return this.#since > -Infinity
  }

  /** Whole milliseconds, so that times keep their exactness. @param max milliseconds. */
  hold(max = MAX_HOLD): number {
    const repeated = Math.max(this.#before.second, this.#current.second)
    const taken = repeated >= 0 ? repeated : Math.max(this.#before.greatest, this.#current.greatest, 0)
    return Math.min(Math.ceil(taken * MARGIN), MAX_HOLD, max)
  }
}

/** The delays of one period. Delays that overlap count as one: they have the same cause. */
class Delays {
  /** The greatest and the second greatest of the delays that are over; -Infinity where there is none. */
  #first = -Infinity
  #next = -Infinity
  /** The newest delay, and when it was first noted: clock time. */
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

  /** The greatest; -Infinity when there is none. */
  get greatest(): number {
    return Math.max(this.#first, this.#newest)
  }

  /** The greatest but one; -Infinity when there are fewer than two. */
  get second(): number {
    return Math.max(this.#next, Math.min(this.#first, this.#newest))
  }
}
