/** A box is far from the members if no reply came faster than this, in milliseconds. */
const FAR = 100

/**
 * How far a box is from the members. One fast reply shows that it is near, although others are slow in a busy process.
 */
export class Distance {
  #fastest = Infinity

  get isFar(): boolean {
    return this.#fastest >= FAR
  }

  /** A reply came after this time, in milliseconds. */
  replied(after: number): void {
    this.#fastest = Math.min(this.#fastest, after)
  }
}
