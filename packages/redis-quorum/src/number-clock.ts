import { performance } from 'node:perf_hooks'

/**
 * A clock that is ahead by at most this many microseconds is not followed. Otherwise two processes that take each
 * other's last step for a lead would drive each other's clocks forward.
 */
const SLACK = 1000

/**
 * Proposes numbers: for the places of requests in the queues, and for their grants. Each is greater than the last. They
 * follow the wall clock, and the clock of a process that is ahead. Otherwise a process whose clock is behind would
 * propose numbers that are too small for its grants, and places ahead of requests that came earlier.
 */
export class NumberClock {
  readonly #micros: () => number
  #last = 0
  /** How far the clocks of other processes were ahead of the clock of this one: microseconds. */
  #lead = 0

  /** @param micros the wall clock in microseconds, fractions included */
  constructor(micros = () => (performance.timeOrigin + performance.now()) * 1000) {
    this.#micros = micros
  }

  /** Returns a number greater than all that were proposed or seen here. */
  next(): number {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#micros() + this.#lead))
    return this.#last
  }

  /** Takes into account a number that a server has given. */
  observe(number: number): void {
    if (number <= this.#last) return
    this.#last = number
    const ahead = number - this.#micros()
    if (ahead > this.#lead + SLACK) this.#lead = ahead
  }
}
