/** A box is far from the members if no reply came faster than this, in milliseconds. */
const FAR = 100

/**
 * Measures how far a box is from the members. One fast reply shows that it is near. Others may be slow because the
 * process is busy.
 */
export class Distance {
  #fastest = Infinity

  get isFar(): boolean {
    return this.#fastest >= FAR
  }

  /** Records the time that a reply took, in milliseconds. */
  replied(after: number): void {
    this.#fastest = Math.min(this.#fastest, after)
  }
}
