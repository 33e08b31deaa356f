import type { Explanation } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import type { PermitWaiter } from '../local/permit-waiter.js'
import { leastDelay } from '../../engine/limits/definition.js'
import type { Reserved, Unit } from '../../engine/limits/reserve-permits.js'
import type { PollSchedule } from './poll-schedule.js'
import { isUnanswered, TryWaiter, type BoxCallers } from './box-callers.js'
import type { BoxTerms } from './box-limiter-options.js'
import type { Decided, ReservationCalls } from './reservation-calls.js'
import { returned, stretchOf, type ReservedInstant, type ReservedPermits } from './reserved-permits.js'

/** A call to the engine. */
interface Asked {
  /** The current terms. */
  readonly terms: BoxTerms
  /** How long each permit must be usable, in milliseconds. */
  readonly hold: number
  /** The units of the waiters. The reply may have others before them. */
  readonly units: readonly Unit[]
  readonly waiters: readonly PermitWaiter[]
  /** Whether the limits have changed since the call. Then only the permits in the reply are used. */
  readonly isOutdated: boolean
}

/** The turn of a waiter without a reservation, according to a reply. */
interface Refusal {
  /** Milliseconds from the decision until the first such turn. */
  readonly ahead: number
  /** Clock time. */
  readonly decidedAt: number
  /** Whether limits of other processes end at that turn. */
  readonly fades: boolean
}

/** Applies the replies of the engine to the callers of this process. */
export class ReservationReplies {
  readonly #callers: BoxCallers
  readonly #reserved: ReservedPermits
  readonly #pace: PollSchedule
  readonly #calls: ReservationCalls
  readonly #errors: LimiterErrors
  /** Whether permits of the newest reply could not be used in time, and are returned. */
  #hasUnused = false
  /** The tries that the newest reply refuses, and in how many milliseconds a permit may be available for each. */
  #refusedTries: [waiter: TryWaiter, readyIn: number][] = []

  constructor(
    callers: BoxCallers,
    reserved: ReservedPermits,
    pace: PollSchedule,
    calls: ReservationCalls,
    errors: LimiterErrors,
  ) {
    this.#callers = callers
    this.#reserved = reserved
    this.#pace = pace
    this.#calls = calls
    this.#errors = errors
  }

  /**
   * Keeps the reserved permits, and handles the waiters without one. Tries are refused by `refuseTries`, after the
   * permits were given to their callers.
   */
  settle(reserved: Reserved, decided: Decided, { terms, hold, units, waiters, isOutdated }: Asked): void {
    this.#hasUnused = false
    // The first units are for waiters that already have a permit.
    const earlier = reserved.units.length - units.length
    // The number of permits that earlier waiters of each size want, because these are served in order.
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
    // Tries that came in the meantime get no permit either.
    const quiet = this.#pace.quietUntil - this.#calls.answeredAt
    if (quiet > 0) {
      for (const waiter of [...this.#callers.tries])
        if (!waiters.includes(waiter)) this.#refusedTries.push([waiter, quiet])
    }
  }

  /** Called when reserved permits could not be used in time. */
  wasUnused(): void {
    this.#hasUnused = true
  }

  /**
   * Refuses the tries that the newest reply refuses. If permits of this reply could not be used in time, requests them
   * once more instead: the permits are returned, so they were refused for nothing.
   */
  refuseTries(): void {
    if (this.#refusedTries.length === 0) return
    const tries = this.#refusedTries
    this.#refusedTries = []
    for (const [waiter, readyIn] of tries) {
      // A try that came after the call has no answer yet.
      if (!waiter.isQueued || isUnanswered(waiter)) continue
      if (this.#hasUnused && !waiter.isRepeated) {
        waiter.isRepeated = true
        waiter.explanation = undefined
        this.#pace.askNow()
        continue
      }
      if (waiter.explanation) waiter.explanation = notBefore(waiter.explanation, readyIn)
      this.#callers.refuse(waiter, this.#errors.busy())
    }
  }

  #keep(instant: ReservedInstant): void {
    const { from, until } = instant
    // If the reply took too long, its permits can't be used any more, and the next hold is longer.
    if (from <= until && until >= this.#calls.answeredAt) return this.#reserved.add(instant)
    this.#reserved.giveBack([returned(instant)])
    this.#hasUnused = true
  }

  /** Handles waiters for which nothing more could be reserved: the remaining permits go to the first of them. */
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
   * Handles a waiter for which nothing could be reserved. @param others number of permits ahead of its own; undefined
   * if another unit may have room for it.
   */
  #refused(
    waiter: PermitWaiter,
    others: number | undefined,
    { ahead, decidedAt, fades }: Refusal,
    terms: BoxTerms,
  ): void {
    if (!waiter.isQueued) return
    if (waiter instanceof TryWaiter) return void this.#refusedTries.push([waiter, ahead])
    // The next call requests the returned permits again.
    if (this.#hasUnused) return
    const deadline = waiter.waitLimit?.deadline ?? Infinity
    if (others !== undefined && deadline < Infinity) {
      const turn = ahead + leastDelay(terms.windows, others)
      if (decidedAt + turn > deadline) {
        return this.#callers.refuse(waiter, this.#errors.tooLate(waiter.waitLimit!.wait, turn))
      }
    }
    this.#pace.isRefused(ahead, decidedAt, fades, terms, this.#calls.answeredAt)
  }
}

/** The explanation in a reply. @param place number of callers ahead. */
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

/** The same explanation, if no permit is available sooner. @param readyIn milliseconds. */
function notBefore(explanation: Explanation, readyIn: number): Explanation {
  if (explanation.readyIn >= readyIn) return explanation
  const { waitsFor } = explanation
  return { ...explanation, waitsFor: waitsFor === 'nothing' ? 'limit' : waitsFor, readyIn }
}
