import type { BoxTerms } from './box-limiter-options.js'
import type { ReservedInstant, ReservedPermits } from './reserved-permits.js'

/** Maximum time before a waiter without a reservation asks again, in milliseconds. */
const ASK_AGAIN = 2500
/** Maximum time before waiters learn of a pause, and of permits that other processes gave back, in milliseconds. */
const LOOK = 250

/** When a process asks the engine again for waiters that it could not serve, and how far ahead it then reserves. */
export class PollSchedule {
  readonly #reserved: ReservedPermits
  /**
   * Nothing more is asked for until then, clock time: the turns of the waiters come later than anything that can be
   * reserved.
   */
  #askAgainAt = -Infinity
  /** Nothing more is asked for before this instant either: the process holds its part. */
  #askAgainAfter: ReservedInstant | undefined
  /** The turn of the first of these waiters: clock time. */
  #nextTurn = -Infinity
  /**
   * Since when there are such waiters while nothing is reserved for this process, clock time; undefined when that is
   * not so.
   */
  #beyondSince: number | undefined
  /** When to ask next for the waiters that have a reserved instant, regardless of earlier questions: clock time. */
  lookAt = -Infinity

  constructor(reserved: ReservedPermits) {
    this.#reserved = reserved
  }

  get askAgainAt(): number {
    return this.#askAgainAt
  }

  get nextTurn(): number {
    return this.#nextTurn
  }

  /** Until when nothing more is asked for: clock time. */
  get quietUntil(): number {
    const after = this.#askAgainAfter
    return after !== undefined && after === this.#reserved.first
      ? Math.max(after.from, this.#askAgainAt)
      : this.#askAgainAt
  }

  /**
   * How far ahead to reserve, in milliseconds. A process that has waited for longer reaches further ahead than others,
   * so it comes before them.
   */
  horizon({ horizon }: BoxTerms, now: number): number {
    return this.#beyondSince === undefined ? horizon : horizon + Math.min(now - this.#beyondSince, horizon)
  }

  /** Asks for what is wanted as soon as anything is. */
  askNow(): void {
    this.#askAgainAt = -Infinity
    this.#askAgainAfter = undefined
  }

  /** Asks although the process holds its part: only the engine knows whether a caller's turn comes in time. */
  askBeyondPart(): void {
    this.#askAgainAfter = undefined
  }

  /** Asks for nothing before this clock time. */
  askNotBefore(time: number): void {
    this.#askAgainAt = time
  }

  /** Something was reserved. */
  isServed(): void {
    this.#beyondSince = undefined
  }

  /**
   * Nothing could be reserved for a waiter. It asks when the reserved permits are used, or when its turn comes nearer.
   * @param ahead milliseconds from when the engine decided until its turn. @param decidedAt clock time.
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
    // While the turn comes nearer, the horizon goes further. The random factor keeps one process from always asking
    // just before another.
    const nearer = Math.min((ahead - this.horizon(terms, now)) / 2, ASK_AGAIN) * (0.75 + Math.random() / 4)
    this.#askAgainAt = now + Math.max(fades ? Math.min(ahead, ASK_AGAIN) : nearer, terms.hold)
  }

  /** Whether to look for earlier instants now. The next look is put off. */
  takeLook(now: number): boolean {
    if (now < this.lookAt) return false
    this.lookAt = now + LOOK
    return true
  }
}
