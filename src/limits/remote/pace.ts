import { MAX_AHEAD, type BoxTerms } from './box-limiter-options.js'
import { TRIPS, type EngineView } from './engine-view.js'
import type { ReservedInstant } from './reserved-permits.js'

/** Delay before the next request to an engine that is unreachable, in milliseconds. */
export const RETRY = 500
/** Maximum time between two requests for a waiter without a reservation, in milliseconds. */
const ASK_AGAIN = 2500
/** Maximum time before waiters learn of a pause, or of permits that other processes have returned, in milliseconds. */
const SEEK = 250
/** Number of rotations after which the horizon stops growing. In a rotation, every process has one turn. */
const ROTATIONS = 1.5

/** Whether to send a request for waiters without a permit now. `turn` is the clock time of the first waiter's turn. */
type PacePhase =
  | { readonly name: 'open' }
  /** Not before the first reserved instant is used, returned or valid, because the process has reserved its part. */
  | { readonly name: 'behind'; readonly instant: ReservedInstant; readonly turn: number }
  /** Not before this clock time, because the turns are beyond the horizon, or the engine is unreachable. */
  | { readonly name: 'quiet'; readonly until: number; readonly turn: number }

const OPEN: PacePhase = { name: 'open' }

/** The turn of a waiter without a reservation, according to a reply. */
export interface Refusal {
  /** Milliseconds from the decision until the first such turn. */
  readonly ahead: number
  /** Clock time. */
  readonly decidedAt: number
  /** Whether limits of other processes end at that turn. */
  readonly fades: boolean
  /** Clock time of the reply. */
  readonly now: number
}

/** Determines when a process sends its next request for waiters without a permit, and how far ahead it reserves. */
export class Pace {
  phase: PacePhase = OPEN
  /** Clock time since which waiters have had no turn within the horizon and nothing is reserved for this process. */
  unservedSince: number | undefined
  /** Clock time from which a call also requests earlier instants for waiters that have a reserved one. */
  seekAt = -Infinity
  readonly #view: EngineView

  constructor(view: EngineView) {
    this.#view = view
  }

  /** Returns the clock time until which to send no request. @param first the first reserved instant. */
  quietUntil(first: ReservedInstant | undefined): number {
    const { phase } = this
    if (phase.name === 'quiet') return phase.until
    return phase.name === 'behind' && phase.instant === first ? first.from : -Infinity
  }

  /** The clock time before which no waiter without a permit has its turn, as long as no request is sent. */
  get turn(): number {
    return this.phase.name === 'open' ? -Infinity : this.phase.turn
  }

  /**
   * Returns the maximum time ahead for reservations, in milliseconds. It covers the time until the next reply. A
   * process that has waited longer reserves further ahead, up to twice as far. So it is served before others, even
   * before those whose requests arrive sooner. The horizon grows for as long as processes usually wait, because
   * processes whose horizons have stopped growing are no longer ordered.
   */
  horizon(terms: BoxTerms, now: number): number {
    const horizon = Math.min(Math.max(terms.horizon, TRIPS * this.#view.roundTrip), MAX_AHEAD)
    if (this.unservedSince === undefined) return horizon
    const longest = Math.max(horizon, ROTATIONS * this.#view.rotation(terms))
    return horizon * (1 + Math.min((now - this.unservedSince) / longest, 1))
  }

  /** Allows a request at once. */
  open(): void {
    this.phase = OPEN
  }

  /** Allows a request although the process has its part, because only the engine knows when a caller's turn comes. */
  openBeyondPart(): void {
    if (this.phase.name === 'behind') this.phase = OPEN
  }

  /** Sends no request before this clock time, because the engine is unreachable. */
  closeUntil(until: number): void {
    this.phase = { name: 'quiet', until, turn: -Infinity }
  }

  /**
   * Called when nothing could be reserved for a waiter. The next request is sent when the reserved permits are used, or
   * when its turn is nearer.
   * @param first the first reserved instant.
   */
  refused(refusal: Refusal, terms: BoxTerms, first: ReservedInstant | undefined): void {
    const { ahead, decidedAt, fades, now } = refusal
    if (this.quietUntil(first) > now) return
    const turn = decidedAt + ahead
    if (first && !fades) {
      this.phase = { name: 'behind', instant: first, turn }
      return
    }
    if (!first) this.unservedSince ??= now
    // The horizon moves on while the turn comes nearer. The random factor prevents one process from always being just
    // ahead of another.
    const nearer = Math.min((ahead - this.horizon(terms, now)) / 2, ASK_AGAIN) * (0.75 + Math.random() / 4)
    const until = now + Math.max(fades ? Math.min(ahead, ASK_AGAIN) : nearer, terms.hold)
    this.phase = { name: 'quiet', until, turn }
  }

  /** Whether to request earlier instants now. If so, sets the time of the next request. */
  takeSeek(now: number): boolean {
    if (now < this.seekAt) return false
    this.seekAt = now + SEEK
    return true
  }
}
