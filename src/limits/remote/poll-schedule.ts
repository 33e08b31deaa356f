import { MAX_AHEAD, type BoxTerms } from './box-limiter-options.js'
import type { ReservationCalls } from './reservation-calls.js'
import type { ReservedInstant, ReservedPermits } from './reserved-permits.js'

/** Maximum time between two requests for a waiter without a reservation, in milliseconds. */
const ASK_AGAIN = 2500
/** Maximum time before waiters learn of a pause, or of permits that other processes have returned, in milliseconds. */
const LOOK = 250
/** Permits are reserved at least this many round trips ahead. */
const TRIPS = 2
/** After this many rotations, in each of which every process has one turn, nothing is reserved further ahead. */
const ROTATIONS = 1.5

/** Determines when a process sends its next request for waiters without a permit, and how far ahead it reserves. */
export class PollSchedule {
  readonly #reserved: ReservedPermits
  readonly #calls: ReservationCalls
  /** No request before this time, because the turns of the waiters are beyond the horizon: clock time. */
  #askAgainAt = -Infinity
  /** No request before this instant either, because the process has reserved its part. */
  #askAgainAfter: ReservedInstant | undefined
  /** The turn of the first of these waiters: clock time. */
  #nextTurn = -Infinity
  /** Since when there are such waiters while nothing is reserved for this process: clock time. */
  #beyondSince: number | undefined
  /** When to send the next request for waiters that have a reserved instant: clock time. */
  lookAt = -Infinity

  constructor(reserved: ReservedPermits, calls: ReservationCalls) {
    this.#reserved = reserved
    this.#calls = calls
  }

  get askAgainAt(): number {
    return this.#askAgainAt
  }

  get nextTurn(): number {
    return this.#nextTurn
  }

  /** Until when to send no request: clock time. */
  get quietUntil(): number {
    const after = this.#askAgainAfter
    return after !== undefined && after === this.#reserved.first
      ? Math.max(after.from, this.#askAgainAt)
      : this.#askAgainAt
  }

  /**
   * How far ahead to reserve, in milliseconds: far enough for the time until the next reply. A process that has waited
   * longer reserves further ahead, up to twice as far, so it is served before others, also before those whose requests
   * arrive sooner. The distance grows for as long as processes usually wait, because it orders only those for which it
   * still grows.
   */
  horizon(terms: BoxTerms, now: number): number {
    const horizon = Math.min(Math.max(terms.horizon, TRIPS * this.#calls.roundTrip), MAX_AHEAD)
    if (this.#beyondSince === undefined) return horizon
    const longest = Math.max(horizon, ROTATIONS * this.#calls.rotation(terms))
    return horizon * (1 + Math.min((now - this.#beyondSince) / longest, 1))
  }

  /** Allows the next request at once. */
  askNow(): void {
    this.#askAgainAt = -Infinity
    this.#askAgainAfter = undefined
  }

  /** Allows a request although the process has its part, because only the engine knows when a caller's turn comes. */
  askBeyondPart(): void {
    this.#askAgainAfter = undefined
  }

  /** Sends no request before this clock time. */
  askNotBefore(time: number): void {
    this.#askAgainAt = time
  }

  /** Called when permits were reserved. */
  isServed(): void {
    this.#beyondSince = undefined
  }

  /**
   * Called when nothing could be reserved for a waiter. The next request is sent when the reserved permits are used, or
   * when its turn is nearer.
   * @param ahead milliseconds from the decision until its turn. @param decidedAt clock time.
   * @param fades whether limits of other processes end then. @param now clock time.
   */
  isRefused(ahead: number, decidedAt: number, fades: boolean, terms: BoxTerms, now: number): void {
    if (this.quietUntil > now) return
    this.#nextTurn = decidedAt + ahead
    const { first } = this.#reserved
    if (first && !fades) {
      this.#askAgainAfter = first
      return
    }
    if (!first) this.#beyondSince ??= now
    // The horizon moves on while the turn comes nearer. The random factor prevents one process from always being just
    // ahead of another.
    const nearer = Math.min((ahead - this.horizon(terms, now)) / 2, ASK_AGAIN) * (0.75 + Math.random() / 4)
    this.#askAgainAt = now + Math.max(fades ? Math.min(ahead, ASK_AGAIN) : nearer, terms.hold)
  }

  /** Whether to request earlier instants now. If so, sets the time of the next request. */
  takeLook(now: number): boolean {
    if (now < this.lookAt) return false
    this.lookAt = now + LOOK
    return true
  }
}
