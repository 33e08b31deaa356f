import type { Clock } from '../../base/clock.js'

/**
 * A time of the server's clock, in milliseconds since 1970, and the corresponding range of this process's clock times.
 */
export interface ServerTime {
  readonly at: number
  readonly earliest: number
  readonly latest: number
}

/** Age that a decision over a slow link is to have on arrival, in milliseconds. */
const MARGIN = 100

/**
 * Estimates the server's clock from its replies. A decision uses the earliest possible time, so that it treats nothing
 * as expired that is still valid for the server. The server rejects decisions for a time in the future, or too far in
 * the past.
 */
export class ServerClock {
  readonly #clock: Clock
  /** Bounds of the server's clock minus this process's. */
  #lower = -Infinity
  #upper = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isKnown(): boolean {
    return this.#lower > -Infinity
  }

  /** Returns a time that the server's clock will have reached when a decision arrives. */
  now(): ServerTime {
    const now = this.#clock.now()
    // The upper bound is from the quickest request so far; hardly any will be quicker.
    const ahead = Math.max(this.#lower, this.#upper - MARGIN)
    return this.timeOf(now + ahead)
  }

  /** @param at a time of the server's clock */
  timeOf(at: number): ServerTime {
    return { at, earliest: at - this.#upper, latest: at - this.#lower }
  }

  /**
   * Updates the bounds. @param time the server's clock, read between the request and now. @param sentAt when it was
   * sent.
   */
  observe(time: number, sentAt: number): void {
    const lower = time - this.#clock.now()
    const upper = time - sentAt
    // If they disagree, the clocks have drifted, or the server's was set, and the newest reply counts.
    // mutant: set-clock-ignored
    const agree = lower <= this.#upper && upper >= this.#lower
    this.#lower = agree ? Math.max(lower, this.#lower) : lower
    this.#upper = agree ? Math.min(upper, this.#upper) : upper
  }

  /** Discards all earlier replies, after the server has rejected a decision because of its time. */
  forget(): void {
    this.#lower = -Infinity
    this.#upper = Infinity
  }
}
