import type { ErrorContext } from '../../errors.js'
import type { Explanation } from '../limiter.js'
import type { PermitWaiter } from '../local/permit-waiter.js'
import { busy, tooLate } from '../refusals.js'
import { leastDelay } from '../../engine/limits/definition.js'
import type { Reserved, Unit } from '../../engine/limits/reserve-permits.js'
import type { PollSchedule } from './poll-schedule.js'
import { isUnanswered, TryWaiter, type BoxCallers } from './box-callers.js'
import type { BoxTerms } from './box-limiter-options.js'
import type { Decided, ReservationCalls } from './reservation-calls.js'
import { returned, stretchOf, type ReservedInstant, type ReservedPermits } from './reserved-permits.js'

/** What a call has asked for. */
interface Asked {
  /** The terms that hold now. */
  readonly terms: BoxTerms
  /** For how long each permit must be usable, in milliseconds. */
  readonly hold: number
  /** Those of the waiters; the answer may have others before them. */
  readonly units: readonly Unit[]
  readonly waiters: readonly PermitWaiter[]
  /** Whether the limits have changed since: then only permits count, and everything else is asked again. */
  readonly isOutdated: boolean
}

/** What an answer reports about waiters without a reservation. */
interface Refusal {
  /** Milliseconds until the first such turn, from when the engine decided. */
  readonly ahead: number
  /** Clock time. */
  readonly decidedAt: number
  /** Whether limits of other processes end at that turn. */
  readonly fades: boolean
}

/** What an answer of the engine means for the callers of this process. */
export class ReservationReplies {
  readonly #callers: BoxCallers
  readonly #reserved: ReservedPermits
  readonly #pace: PollSchedule
  readonly #calls: ReservationCalls
  /** For messages. */
  readonly #context: ErrorContext

  constructor(
    callers: BoxCallers,
    reserved: ReservedPermits,
    pace: PollSchedule,
    calls: ReservationCalls,
    context: ErrorContext,
  ) {
    this.#callers = callers
    this.#reserved = reserved
    this.#pace = pace
    this.#calls = calls
    this.#context = context
  }

  /** Keeps the permits, and refuses the waiters for which there is none. */
  settle(reserved: Reserved, decided: Decided, { terms, hold, units, waiters, isOutdated }: Asked): void {
    // The first units are of waiters that have a permit already.
    const earlier = reserved.units.length - units.length
    // How many permits earlier waiters keep waiting for, by size: waiters of one size are served in order.
    const behind = new Map<number, number>()
    for (const [index, permits] of reserved.units.entries()) {
      const { n, at } = permits
      if (n > 0) this.#keep(stretchOf(permits, reserved, hold, decided, units[index - earlier]?.within === 0))
      else if (index >= earlier && !isOutdated) {
        const refusal = {
          ahead: at - reserved.now,
          decidedAt: decided.earliest,
          fades: at === reserved.fadesAt,
        }
        if (terms.batch > 1) this.#refusedBatch(waiters, refusal, terms)
        else this.#refusedUnit(waiters[index - earlier]!, behind, refusal, terms)
      }
    }
    if (this.#reserved.first) this.#pace.isServed()
    // There is no permit either for tries that came meanwhile.
    const quiet = this.#pace.quietUntil - this.#calls.answeredAt
    if (quiet > 0) {
      for (const waiter of [...this.#callers.tries])
        if (!waiters.includes(waiter)) this.#refuseTry(waiter, quiet)
    }
  }

  #keep(instant: ReservedInstant): void {
    const { from, until } = instant
    // An answer that took too long leaves no time to use it: the next hold is longer.
    if (from > until || until < this.#calls.answeredAt) this.#reserved.giveBack([returned(instant)])
    else this.#reserved.add(instant)
  }

  /** Nothing more could be reserved for these waiters: the permits that are open go to the first of them. */
  #refusedBatch(waiters: readonly PermitWaiter[], refusal: Refusal, terms: BoxTerms): void {
    let open = this.#reserved.openPermits(this.#calls.answeredAt)
    for (const waiter of waiters) {
      if (waiter.n <= open) open -= waiter.n
      else this.#refused(waiter, undefined, refusal, terms)
    }
  }

  #refusedUnit(waiter: PermitWaiter, behind: Map<number, number>, refusal: Refusal, terms: BoxTerms): void {
    const others = behind.get(waiter.n) ?? 0
    this.#refused(waiter, others, refusal, terms)
    if (waiter.isQueued && !(waiter instanceof TryWaiter)) behind.set(waiter.n, others + waiter.n)
  }

  /**
   * Nothing could be reserved for this waiter. @param others how many permits come before its own; undefined where
   * another unit may have room for it.
   */
  #refused(
    waiter: PermitWaiter,
    others: number | undefined,
    { ahead, decidedAt, fades }: Refusal,
    terms: BoxTerms,
  ): void {
    if (!waiter.isQueued) return
    if (waiter instanceof TryWaiter) return this.#refuseTry(waiter, ahead)
    const deadline = waiter.waitLimit?.deadline ?? Infinity
    if (others !== undefined && deadline < Infinity) {
      const turn = ahead + leastDelay(terms.windows, others)
      if (decidedAt + turn > deadline) {
        return this.#callers.refuse(waiter, tooLate(deadline - decidedAt, turn, this.#context))
      }
    }
    this.#pace.isRefused(ahead, decidedAt, fades, terms, this.#calls.answeredAt)
  }

  /** @param readyIn milliseconds until there may be a permit for it. */
  #refuseTry(waiter: TryWaiter, readyIn: number): void {
    // The try came after the call that has just been answered.
    if (isUnanswered(waiter)) return
    if (waiter.explanation) waiter.explanation = notBefore(waiter.explanation, readyIn)
    this.#callers.refuse(waiter, busy(0, 0, this.#context))
  }
}

/** The explanation that an answer gives. @param place how many callers are before the one that asks. */
export function explanationOf({ now, pausedUntil, explained }: Reserved, place: number): Explanation {
  const { ready, binding, reports } = explained!
  const readyIn = ready - now
  return {
    waitsFor: pausedUntil > now ? 'pause' : readyIn > 0 ? 'limit' : 'nothing',
    binding: binding === undefined ? undefined : reports[binding],
    place,
    readyIn,
    running: 0,
    limits: reports,
  }
}

/** The same explanation where nothing is there sooner. @param readyIn milliseconds. */
function notBefore(explanation: Explanation, readyIn: number): Explanation {
  if (explanation.readyIn >= readyIn) return explanation
  const { waitsFor } = explanation
  return { ...explanation, waitsFor: waitsFor === 'nothing' ? 'limit' : waitsFor, readyIn }
}
