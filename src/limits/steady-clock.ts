/**
 * A clock that is read again and again and must not go back: a reading that is a little too early counts as the latest
 * one. A clock that was set back further is believed, and told.
 */
export class SteadyClock {
  readonly #clock: { now(): number }
  readonly #tolerance: number
  readonly #setBack: (now: number) => void
  #latest = -Infinity

  /**
   * @param tolerance by how much a reading may be too early: milliseconds.
   * @param setBack called with the time that is believed from now on.
   */
  constructor(clock: { now(): number }, tolerance: number, setBack: (now: number) => void) {
    this.#clock = clock
    this.#tolerance = tolerance
    this.#setBack = setBack
  }

  now(): number {
    const reading = this.#clock.now()
    return reading >= this.#latest ? (this.#latest = reading) : this.#tooEarly(reading)
  }

  #tooEarly(reading: number): number {
    if (this.#latest - reading <= this.#tolerance) return this.#latest
    this.#latest = reading
    this.#setBack(reading)
    return reading
  }
}
