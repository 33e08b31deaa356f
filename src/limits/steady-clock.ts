/** Hides small backward steps of a clock, and reports larger ones. */
export class SteadyClock {
  readonly #clock: { now(): number }
  readonly #tolerance: number
  readonly #onSetBack: () => void
  #latest = -Infinity

  /**
   * @param tolerance maximum time by which a reading may be too early, in milliseconds.
   * @param onSetBack called when a reading shows that the clock was set back.
   */
  constructor(clock: { now(): number }, tolerance: number, onSetBack: () => void) {
    this.#clock = clock
    this.#tolerance = tolerance
    this.#onSetBack = onSetBack
  }

  now(): number {
    const reading = this.#clock.now()
    return reading >= this.#latest ? (this.#latest = reading) : this.#tooEarly(reading)
  }

  #tooEarly(reading: number): number {
    if (this.#latest - reading <= this.#tolerance) return this.#latest
    this.#onSetBack()
    return (this.#latest = reading)
  }
}
