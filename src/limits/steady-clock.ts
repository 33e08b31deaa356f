/**
 * A clock that is read again and again and must not go back: a reading that is a little too early counts as the latest
 * one. A clock that was set back further is believed.
 */
export class SteadyClock {
  readonly #clock: { now(): number }
  readonly #tolerance: number
  #latest = -Infinity
  #setBacks = 0

  /** @param tolerance by how much a reading may be too early: milliseconds. */
  constructor(clock: { now(): number }, tolerance: number) {
    this.#clock = clock
    this.#tolerance = tolerance
  }

  /** How often it was set back. */
  get setBacks(): number {
    return this.#setBacks
  }

  now(): number {
    const reading = this.#clock.now()
    return reading >= this.#latest ? (this.#latest = reading) : this.#tooEarly(reading)
  }

  #tooEarly(reading: number): number {
    if (this.#latest - reading <= this.#tolerance) return this.#latest
    this.#setBacks++
    return (this.#latest = reading)
  }
}
