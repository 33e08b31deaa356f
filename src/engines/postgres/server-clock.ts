import type { Clock } from '../../clock.js'

/** A time of the server's clock, and when it was: milliseconds since 1970, and times of this process. */
export interface ServerTime {
  readonly at: number
  readonly earliest: number
  readonly latest: number
}

/** A decision that is long on its way is made for a time that is so much before it arrives: milliseconds. */
const MARGIN = 100

/**
 * The server's clock, as far as its answers have told. A decision is made at the earliest time that it can be, so that
 * nothing has expired that has not expired for the server as well. The server refuses a decision that is ahead of it,
 * or too far behind.
 */
export class ServerClock {
  readonly #clock: Clock
  /** The server's clock less this process's, at the least and at the most. */
  #least = -Infinity
  #most = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isKnown(): boolean {
    return this.#least > -Infinity
  }

  /** A time that the server's clock has reached when a decision arrives. */
  now(): ServerTime {
    const now = this.#clock.now()
    // The quickest question so far has met the server's clock at the most: none comes much sooner.
    const ahead = Math.max(this.#least, this.#most - MARGIN)
    return { at: now + ahead, earliest: now + ahead - this.#most, latest: now + ahead - this.#least }
  }

  /** The server has answered. @param told its clock, between the question and now. @param asked when it was asked. */
  told(told: number, asked: number): void {
    const least = told - this.#clock.now()
    const most = told - asked
    // The clocks drift apart, and the server's can be set. Then the newest answer is right.
    const agree = least <= this.#most && most >= this.#least
    this.#least = agree ? Math.max(least, this.#least) : least
    this.#most = agree ? Math.min(most, this.#most) : most
  }

  /** The server has refused a decision because of its time: only its newest answer counts. */
  forget(): void {
    this.#least = -Infinity
    this.#most = Infinity
  }
}
