/** The wall clock in microseconds, fractions included. */
function wallMicroseconds(): number {
  return (performance.timeOrigin + performance.now()) * 1000
}

/**
 * Clocks that differ by no more, microseconds, are not followed: two that took each other's last step for a lead would
 * drive each other on.
 */
const SLACK = 1000

/**
 * Proposes numbers: for the places of requests in the queues, and for their grants. They rise from one to the next, run
 * with the wall clock, and with that of whoever is ahead: a process whose clock is behind would otherwise propose what the
 * servers have to refuse, and stand before others who asked earlier.
 */
export class NumberClock {
  readonly #micros: () => number
  #last = 0
  /** How far others were ahead of the own clock: microseconds. */
  #lead = 0

  /** @param micros the wall clock in microseconds */
  constructor(micros: () => number = wallMicroseconds) {
    this.#micros = micros
  }

  /** Greater than every number that was proposed or seen here. */
  next(): number {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#micros() + this.#lead))
    return this.#last
  }

  /** Takes note of a number that a server has given. */
  observe(number: number): void {
    if (number <= this.#last) return
    this.#last = number
    const ahead = number - this.#micros()
    if (ahead > this.#lead + SLACK) this.#lead = ahead
  }
}
