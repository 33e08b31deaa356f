/** The measure of a while is forgotten when two such are over: milliseconds. */
const WHILE = 2000
/** So much longer than what was measured: what comes next may take a little longer. */
const MARGIN = 1.15
/** An engine that is farther away gives permits that are over when they come: milliseconds. */
const MOST = 2000

/**
 * For how long permits have to be usable so that they are used, as a process sees it: from the earliest moment at which
 * one can have begun to be usable, by what is known of the engine's clock, until it is given to its caller. That is the
 * way of question and answer, and what the event loop is late. The greatest of a while but one counts, and a little more:
 * a process that was stopped once loses the permits of that time, which is less than a hold as long would cost it for
 * each permit of the next seconds.
 */
export class HoldMeter {
  #before = new Delays()
  #current = new Delays()
  /** When the while began: clock time. */
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

  /** Whole milliseconds, so that times keep their exactness. @param most milliseconds. */
  hold(most = MOST): number {
    const repeated = Math.max(this.#before.second, this.#current.second)
    const taken = repeated >= 0 ? repeated : Math.max(this.#before.greatest, this.#current.greatest, 0)
    return Math.min(Math.ceil(taken * MARGIN), MOST, most)
  }
}

/** The delays of a while. Those that overlap are one: they have the same cause. */
class Delays {
  /** Of those that are over, the greatest and the next one; -Infinity where there is none. */
  #first = -Infinity
  #next = -Infinity
  /** The newest, and when it was noted first: clock time. */
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
