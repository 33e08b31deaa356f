import type { PermitReservation } from '../../engine/contract.js'
import { MAX_AHEAD, type BoxTerms } from './box-limiter-options.js'
import type { LatencyEstimator } from './latency-estimator.js'
import type { ReservedInstant } from './reserved-permits.js'

/** Delay before the next request to an engine that is unreachable, in milliseconds. */
export const RETRY = 500
/** Maximum time between two requests for a waiter without a reservation, in milliseconds. */
const ASK_AGAIN = 2500
/**
 * Maximum time before waiters learn of a pause, or of permits and amounts that other processes have returned, in
 * milliseconds.
 */
const SEEK = 250
/** Number of rotations after which the horizon stops growing. In a rotation, every process has one turn. */
const ROTATIONS = 1.5

/** The weight of the newest reply in the average round trip. */
const NEWEST = 0.25
/** Number of average round trips for which a process reserves at least, because the next one may take longer. */
const TRIPS = 2
/**
 * The time for which a process reserves if that is to be short, unless a call takes longer, in milliseconds. It is
 * several times as long as the pause between two calls, so that each process reserves its part
 * before others take what is left.
 */
const BRIEF_AHEAD = 50
/** Minimum bound of the credit, in permits: a process that seldom wants some gets a few at once. */
const MIN_CREDIT = 4
/** And the minimum pause between two calls without a permit, in milliseconds, even if permits can be used for longer. */
const BRIEF_PAUSE = 10

/** Maximum drift between two good clocks, as a part of the time: both may be slewed. */
const DRIFT = 1e-3

/**
 * Bounds the offset between the clocks of an engine and of this process. Each reply shows that a moment of the engine's
 * clock was between two moments of the own clock. Quick replies give narrower bounds, which also apply to the next
 * replies, because clocks drift slowly.
 */
export class ClockOffset {
  /** Lower and upper bound of the own time minus the engine's. */
  #min = -Infinity
  #max = Infinity
  /** The own time of the newest reply. */
  #learnedAt = -Infinity

  /** Returns the own times between which `moment` of the engine's clock was, at least as narrow as the reply shows. */
  learn(moment: number, earliest: number, latest: number): readonly [earliest: number, latest: number] {
    const drift = this.#learnedAt === -Infinity ? 0 : Math.max(latest - this.#learnedAt, 0) * DRIFT
    const min = this.#min - drift
    const max = this.#max + drift
    // If they contradict each other, a clock was set, or another server replies.
    const agree = min <= latest - moment && earliest - moment <= max
    this.#min = agree ? Math.max(min, earliest - moment) : earliest - moment
    this.#max = agree ? Math.min(max, latest - moment) : latest - moment
    this.#learnedAt = latest
    return [moment + this.#min, moment + this.#max]
  }
}

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

/**
 * Determines when a process sends its next request for waiters without a permit, and how much and how far ahead it
 * reserves: by the latency of the engine and the number of waiting processes, as the replies for one limiter show them.
 */
export class Pace {
  /**
   * A request for waiters without a permit is sent when this instant is used, returned or valid, because the process has
   * reserved its part.
   */
  behind: ReservedInstant | undefined
  /** Otherwise no such request is sent before this clock time: the turns are far ahead, or the engine is unreachable. */
  until = -Infinity
  /** The clock time before which no waiter without a permit has its turn, as long as no request is sent. */
  turn = -Infinity
  /** Clock time since which waiters have had no turn within the horizon and nothing is reserved for this process. */
  unservedSince: number | undefined
  /**
   * Whether the process reserves only for a short time ahead: if callers with tenants wait, because a new tenant has its
   * turn afterwards; with other units than calls, because other calls may settle less than they have estimated.
   */
  isBrief = false
  /** The credit while it reserves briefly, the clock time since which it grows, and its bound. */
  #credit = Infinity
  #creditAt = 0
  #maxCredit = 0
  /** Clock time from which a call also requests earlier instants for waiters that have a reserved one. */
  seekAt = -Infinity
  readonly #offset = new ClockOffset()
  /** Number of processes that wait for permits, in the last reply. */
  #contenders = 1
  /** The average time from a request to its reply, in milliseconds; undefined before the first reply. */
  #roundTrip: number | undefined
  readonly #meter: LatencyEstimator

  /** @param meter the estimate of the latency, which all clients of the box share. */
  constructor(meter: LatencyEstimator) {
    this.#meter = meter
  }

  /** Returns the time for which each permit must be usable, in milliseconds. */
  hold({ hold, maxHold }: BoxTerms): number {
    return Math.max(hold, this.#meter.hold(maxHold))
  }

  /**
   * Returns the time within which the process takes permits beyond its part, in milliseconds: the time of a call. If it
   * reserves briefly, the time until its next call, because other processes reserve their parts before.
   */
  reach(terms: BoxTerms): number {
    return this.isBrief ? BRIEF_PAUSE : this.hold(terms)
  }

  /** Whether any client of the box has had a reply. Before that, the necessary hold is not known. */
  get hasMeasured(): boolean {
    return this.#meter.hasMeasured
  }

  /**
   * Number of permits that this process reserves ahead: an equal part of one window for each waiting process, rounded
   * at random, so that the parts of all add up to one window. If the window is shorter than the time until the next
   * reply, it reserves its part of all permits of that time. If a process is paused, its reserved permits are wasted:
   * the engine can't grant them to others, because the process may have used them just before. So a pause costs the
   * other processes one part, regardless of the number of its callers and the length of the pause. A smaller part
   * would be unfair: permits that no process has reserved go to the first request, which is that of the nearest process
   * again and again.
   *
   * A process always reserves at least one permit, which keeps its place behind the others. Beyond its part, it also
   * takes permits that can be used within the time of a call, because the other processes do not want them. So a
   * process with many callers gets the permits that those with few callers leave.
   */
  part(terms: BoxTerms): number {
    return Math.floor(this.#exactPart(terms) + Math.random())
  }

  #exactPart(terms: BoxTerms): number {
    const hold = this.hold(terms)
    const untilReply = TRIPS * (this.#roundTrip ?? 0)
    const parts = terms.windows.map(({ kind, limit, per, unit }) => {
      // The permits of a smooth window are spread, so only those within the horizon can be shared.
      const window = kind === 'smooth' ? Math.min(this.#ahead(terms) / per, 1) : 1
      return terms.costs.callsOf(limit, unit) * Math.max(window, untilReply / (per + hold))
    })
    return Math.min(...parts) / this.#contenders
  }

  /**
   * Returns the number of permits that the process may reserve now while it reserves briefly; the last of them may
   * exceed it, so it may become negative. It grows with time by the part that the process has of the rate, and shrinks
   * by the permits that the process gets. So processes share by their parts, even if others have a permit at each
   * request.
   */
  credit(terms: BoxTerms, now: number): number {
    const { windows, costs } = terms
    const rates = windows.map(({ limit, per, guard, unit }) => costs.callsOf(limit, unit) / (per + guard))
    const rate = Math.min(...rates) / this.#contenders
    this.#maxCredit = Math.max(this.#exactPart(terms), MIN_CREDIT)
    this.#credit = Math.min(this.#credit + rate * (now - this.#creditAt), this.#maxCredit)
    this.#creditAt = now
    return this.#credit
  }

  /** Records permits that the process has got while it reserves briefly. */
  charge(permits: number): void {
    this.#credit = Math.max(this.#credit - permits, -Math.max(this.#maxCredit, permits))
  }

  /** Returns the time until each waiting process has had one permit, in milliseconds. */
  rotation({ windows, costs }: BoxTerms): number {
    return (
      this.#contenders * Math.max(...windows.map(({ limit, per, unit }) => per / costs.callsOf(limit, unit)))
    )
  }

  /**
   * Records the state in a reply, and returns the reply with narrower bounds of its decision.
   * @param askedAt clock time of the request. @param now clock time of the reply.
   */
  learn({ reserved, ...bounds }: PermitReservation, askedAt: number, now: number): PermitReservation {
    if (reserved.contenders > 0) this.#contenders = reserved.contenders
    const taken = now - askedAt
    this.#roundTrip = taken * NEWEST + (this.#roundTrip ?? taken) * (1 - NEWEST)
    const [earliest, latest] = this.#offset.learn(reserved.now, bounds.earliest, bounds.latest)
    this.noteUse(earliest, now)
    return { reserved, earliest, latest }
  }

  /**
   * Records the delay of a decision or a permit. @param earliest the earliest clock time at which it may have begun.
   */
  noteUse(earliest: number, now: number): void {
    this.#meter.note(now - earliest, now)
  }

  /** Returns the clock time until which to send no request. @param first the first reserved instant. */
  quietUntil(first: ReservedInstant | undefined): number {
    if (!this.behind) return this.until
    return this.behind === first ? first.from : -Infinity
  }

  /**
   * Returns the maximum time ahead for reservations, in milliseconds. It covers the time until the next reply. A
   * process that has waited longer reserves further ahead, up to twice as far. So it is served before others, even
   * before those whose requests arrive sooner. The horizon grows for as long as processes usually wait, because
   * processes whose horizons have stopped growing are no longer ordered.
   */
  horizon(terms: BoxTerms, now: number): number {
    const horizon = Math.min(Math.max(this.#ahead(terms), TRIPS * (this.#roundTrip ?? 0)), MAX_AHEAD)
    if (this.unservedSince === undefined) return horizon
    const longest = Math.max(horizon, ROTATIONS * this.rotation(terms))
    return horizon * (1 + Math.min((now - this.unservedSince) / longest, 1))
  }

  /** The maximum time ahead for reservations, unless the next reply or a turn takes longer, in milliseconds. */
  #ahead(terms: BoxTerms): number {
    return this.isBrief ? Math.min(BRIEF_AHEAD, terms.horizon) : terms.horizon
  }

  /** Allows a request at once. */
  open(): void {
    this.behind = undefined
    this.until = this.turn = -Infinity
  }

  /** Allows a request although the process has its part, because only the engine knows when a caller's turn comes. */
  openBeyondPart(): void {
    if (this.behind) this.open()
  }

  /** Sends no request before this clock time, because the engine is unreachable. */
  closeUntil(until: number): void {
    this.open()
    this.until = until
  }

  /**
   * Called when nothing could be reserved for a waiter. The next request is sent when the reserved permits are used, or
   * when its turn is nearer.
   * @param first the first reserved instant.
   */
  refused(refusal: Refusal, terms: BoxTerms, first: ReservedInstant | undefined): void {
    const { ahead, decidedAt, fades, now } = refusal
    if (this.quietUntil(first) > now) return
    this.turn = decidedAt + ahead
    this.behind = fades || this.isBrief ? undefined : first
    if (this.behind) return
    if (!first) this.unservedSince ??= now
    // The horizon moves on while the turn comes nearer. The random factor prevents one process from always being just
    // ahead of another.
    const again = terms.costs.units.length > 0 ? SEEK : ASK_AGAIN
    const nearer = Math.min((ahead - this.horizon(terms, now)) / 2, again) * (0.75 + Math.random() / 4)
    const least = this.isBrief ? Math.min(terms.hold, BRIEF_PAUSE) : terms.hold
    // Another process may switch to this process's limits at any time.
    this.until = now + Math.max(fades ? Math.min(ahead, SEEK) : nearer, least)
  }

  /** Whether to request earlier instants now. If so, sets the time of the next request. */
  takeSeek(now: number): boolean {
    if (now < this.seekAt) return false
    this.seekAt = now + SEEK
    return true
  }
}
