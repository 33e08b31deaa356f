import type { TenantInTurn } from '../../base/tenants.js'
import type { PermitReservation } from '../../engine/contract.js'
import { leastDelay } from '../../engine/limits/definition.js'
import { isSameCost, type Cost } from '../../engine/limits/cost.js'
import type { Explain, ReservePermits, Reserved, ReturnedPermits } from '../../engine/limits/reservation.js'
import { ClosedError, UnavailableError } from '../../base/errors.js'
import { explanationOf, type Explanation } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import type { PermitWaiter } from '../callers.js'
import { isUnanswered, TryWaiter, type BoxCallers } from './box-callers.js'
import { keeps, type BoxTerms } from './box-limiter-options.js'
import { RETRY, type Pace, type Refusal } from './pace.js'
import {
  costOf,
  reservedInstant,
  ReservedPermits,
  returned,
  type ReservedInstant,
} from './reserved-permits.js'
import {
  earlierUnits,
  NOTHING,
  unitOfEach,
  unitsInBatches,
  type Situation,
  type WantedUnits,
} from './wanted-units.js'

/** Maximum number of tenants in a request; the others count as one. */
const MAX_TENANTS = 32

/** A request to the engine, except for the names of the limiter and the session. */
export type Request = Omit<ReservePermits, 'limiter' | 'session'>

/** The call that is under way. Its request may have other units before those of the waiters. */
interface Call extends WantedUnits {
  readonly request: Request
  /** Clock time. */
  readonly askedAt: number
  readonly terms: BoxTerms
  /** The tries that also want an explanation, and the number of callers ahead of one. */
  readonly deciders: readonly TryWaiter[]
  readonly place: number
  /** The tenants in the request. */
  readonly tenants: readonly TenantInTurn[] | undefined
}

/** A waiter that gets its permits, and their instant by the engine's clock. */
export interface Grant {
  readonly waiter: PermitWaiter
  readonly at: number
}

/**
 * Decides for the callers of one limiter when to call the engine, and which of them get the permits in its replies. It
 * has no clock, timers or connection: `ReservationClient` reports events with their clock time. The client also takes
 * the step that is due, in a microtask: `ask` for `gather`, `give` for `give`. While none is due, the client calls
 * `wake` at `nextCheck`. A state is the step that is due, and whether a call to the engine is under way:
 *
 * | state | event | next state |
 * |-|-|-|
 * | none, no call | a caller enters or leaves, a refund, other terms, the end of a pause | gather, no call |
 * | none, no call | `wake` | give, no call |
 * | gather, no call | `ask` | none, usually with a call |
 * | gather, no call | `wake` | give, no call |
 * | none, call | `wake` | give, call |
 * | none or give, call | `replied` or `failed` | give, no call |
 * | give | `give` that grants permits | give |
 * | give, no call | `give` that grants nothing | gather, no call |
 * | give, call | `give` that grants nothing | none, call |
 *
 * `pace` determines whether to send a request for waiters without a permit. A step costs O(1), a call O(waiters +
 * reserved permits).
 */
export class ReservationMachine {
  /** The next step: to call the engine for all events of the current task, or to give permits that are valid. */
  due: 'none' | 'gather' | 'give' = 'none'
  call: Call | undefined
  terms: BoxTerms
  /** The error of the last request; undefined if it succeeded. */
  outage: Error | undefined
  /** Clock time of the next request to an unreachable engine. */
  retryAt = -Infinity
  readonly reserved = new ReservedPermits()
  readonly pace: Pace
  readonly #callers: BoxCallers
  readonly #errors: LimiterErrors
  /** Whether a caller has returned permits or amounts since the last call. */
  #isRefunding = false
  /** Whether permits of the newest reply could not be used in time and are returned. */
  hasUnused = false
  /** The tries that the newest reply refuses, and the milliseconds until a permit may be available for each. */
  refusedTries: [waiter: TryWaiter, readyIn: number][] = []

  constructor(terms: BoxTerms, callers: BoxCallers, pace: Pace, errors: LimiterErrors) {
    this.terms = terms
    this.#callers = callers
    this.#errors = errors
    this.pace = pace
  }

  /** Schedules one call for all requests of the current task. */
  gather(): void {
    // Callers that get their permits now may request the next ones together, after the last of them.
    if (this.due === 'none' && !this.call) this.due = 'gather'
  }

  /** Called when a waiter has left. Its reserved permits go to the next waiter, or are returned. */
  left(): void {
    // The delay was for waiters without a reservation, which have left, and need not apply to others.
    // mutant: delay-without-waiters
    if (this.#callers.wanted <= this.reserved.permits && !this.outage) this.pace.open()
    this.gather()
  }

  refunded(permits: ReturnedPermits): void {
    this.reserved.giveBack([permits])
    this.#isRefunding = true
    this.gather()
  }

  /** Called when calls have used other amounts than the cost of their permit. @param at the instant of the permit. */
  settled(change: readonly number[], at: number): void {
    const less = change.map(amount => Math.max(-amount, 0))
    const more = change.map(amount => Math.max(amount, 0))
    if (more.some(Boolean)) this.reserved.overdraw(more)
    if (less.some(Boolean)) this.refunded({ n: 0, amounts: less, at, from: at })
    else this.gather()
  }

  changed(terms: BoxTerms): void {
    const before = this.terms
    this.terms = terms
    this.#callers.refuseAbove(terms.costs)
    // A permit that is returned and requested again would come after those of other processes.
    // mutant: permits-above-limit
    if (!keeps(before, terms)) this.reserved.giveBackWhere(() => true)
    this.resumed()
  }

  resumed(): void {
    this.pace.open()
    this.gather()
  }

  /** Called at the next check. Returns whether a step must be taken at once. */
  wake(): boolean {
    if (this.due === 'give') return false
    this.due = 'give'
    return true
  }

  /** The clock time until which a request for waiters without a permit is useless. */
  get quietUntil(): number {
    return this.pace.quietUntil(this.reserved.first)
  }

  /** Whether to check now whether an unreachable engine is back. If so, sets the time of the next request. */
  takeRetry(now: number): boolean {
    if (now < this.retryAt) return false
    this.retryAt = now + RETRY
    return true
  }

  /**
   * Begins the call that reserves the permits that waiters want, or returns permits; undefined if there is no need, or
   * a call is under way. @param isProbe whether to send the call anyway.
   */
  ask(now: number, isProbe: boolean): Call | undefined {
    if (this.due === 'gather') this.due = 'none'
    // mutant: two-calls
    if (this.call) return undefined
    const { terms, outage, reserved } = this
    // The waiters of this process may get what it returns.
    if (this.#isRefunding && !outage) this.pace.open()
    this.#isRefunding = false
    // Without waiters, reserved permits are returned at once.
    const isQuiet = this.quietUntil > now && (this.#callers.waiting > 0 || outage !== undefined)
    const tenants = this.#callers.queue.waitingTenants(MAX_TENANTS)
    this.pace.isBrief = tenants !== undefined || terms.costs.units.length > 0
    const part = this.pace.part(terms)
    const credit = this.pace.isBrief ? this.pace.credit(terms, now) : undefined
    const reach = this.pace.reach(terms)
    const hold = this.pace.hold(terms)
    const situation: Situation = {
      waiters: this.#callers.queue,
      reserved,
      terms,
      part,
      credit,
      reach,
      hold,
      now,
    }
    const { units: wanted, waiters } = isQuiet
      ? NOTHING
      : (terms.batch > 1 ? unitsInBatches : unitOfEach)(situation)
    // The first call of a process reserves nothing: its reply shows the necessary hold. A permit with a shorter hold
    // could not be used, and would delay the permits of other processes to the next window.
    const isFirst = wanted.length > 0 && !this.pace.hasMeasured
    const units = isFirst ? NOTHING.units : wanted
    const deciding = isQuiet && outage ? [] : [...this.#callers.tries].filter(({ isDecision }) => isDecision)
    // A reply explains one cost. Callers with another one get the next reply.
    const deciders = deciding.filter(({ cost }) => isSameCost(cost, deciding[0]!.cost))
    const returns = reserved.isOwing && (!outage || now >= this.retryAt)
    const isNeeded =
      units.length > 0 || returns || deciders.length > 0 || isFirst || this.#seekFrom(now) <= now
    if (!isNeeded && !isProbe) return undefined
    const ahead = units.length === 0 ? Math.max(this.#callers.wanted - reserved.permits, 0) : 0
    const explain = deciders[0] && explainOf(deciders[0].cost, this.#callers.costOf(ahead))
    // Requested from time to time, because the engine sends no hints about it.
    const earlier = this.pace.takeSeek(now) ? earlierUnits(situation) : NOTHING.units
    // Earlier explanations are stale when the reply arrives.
    for (const waiter of deciders) waiter.explanation = undefined
    const request = this.request(now, {
      units: earlier.concat(units),
      tenants: tenants?.map(({ name, weight }) => ({ name, weight })),
      returns: reserved.takeReturns(),
      overdrawn: reserved.takeOverdrawn(),
      explain,
    })
    return (this.call = {
      request,
      askedAt: now,
      terms,
      units,
      waiters,
      deciders,
      place: this.#callers.waiting,
      tenants,
    })
  }

  /** Returns a request under the current terms. */
  request(now: number, wanted: Partial<Request>): Request {
    const { windows, costs } = this.terms
    const measures = costs.units.length > 0 ? costs.units : undefined
    const horizon = this.pace.horizon(this.terms, now)
    const hold = this.pace.hold(this.terms)
    const nothing = { units: [], returns: [], pause: undefined, explain: undefined }
    return { windows, measures, horizon, hold, ...nothing, ...wanted }
  }

  /** Records the state of the limiter in a reply. @param askedAt clock time of the request. */
  learn(answer: PermitReservation, askedAt: number, now: number): PermitReservation {
    this.outage = undefined
    const learned = this.pace.learn(answer, askedAt, now)
    this.reserved.giveBackUseless(learned)
    return learned
  }

  /** Applies the reply to the call that is under way. */
  replied(answer: PermitReservation, now: number): void {
    const { request, askedAt, terms, deciders, place, tenants } = this.call!
    for (const [index, parts] of (answer.reserved.processes ?? []).entries()) tenants![index]!.share(parts)
    const learned = this.learn(answer, askedAt, now)
    const { reserved } = learned
    const explanation = reserved.explained && explanationIn(reserved, place)
    for (const waiter of deciders) waiter.explanation = explanation
    if (keeps(terms, this.terms)) this.#settle(this.call!, learned, now)
    // Permits that were reserved under a greater limit than the current one are requested again.
    // mutant: outdated-permits-lost
    else this.reserved.giveBackAll(reserved, request.units, request.hold)
    this.#ended()
  }

  /** Handles a call that did not reach the engine. */
  failed(error: Error, now: number): void {
    const { request, waiters } = this.call!
    if (error instanceof ClosedError) return this.#ended()
    // If the call may have returned the permits, they count as used, because they must not be returned twice.
    // mutant: returns-twice
    if (error instanceof UnavailableError) this.reserved.giveBack(request.returns)
    // These may count twice, which exceeds no limit.
    this.reserved.overdraw(request.overdrawn)
    this.away(error, now)
    const { onUnavailable } = this.terms
    if (onUnavailable === 'closed') this.pace.closeUntil(this.retryAt)
    if (onUnavailable === 'error')
      for (const waiter of waiters) if (waiter.isQueued) this.#callers.refuse(waiter, error)
    // Also refuses tries that came during the call: with the next call, they could wait twice as long.
    if (onUnavailable === 'closed' || onUnavailable === 'error')
      for (const waiter of [...this.#callers.tries]) this.#callers.refuse(waiter, error)
    this.#ended()
  }

  /** Called when a request did not reach the engine. */
  away(error: Error, now: number): void {
    this.outage = error
    this.retryAt = now + RETRY
  }

  #ended(): void {
    this.call = undefined
    // mutant: reply-without-step
    this.due = 'give'
  }

  /** Takes the permits for the first waiter that can use some now. Without one, refuses the tries that get none. */
  give(now: number): Grant | undefined {
    this.due = 'none'
    this.#callers.refuseLate(now, this.outage)
    this.#returnOver(now)
    const grant = this.#grant(now)
    if (grant) {
      this.due = 'give'
      return grant
    }
    // mutant: tries-kept
    this.#refuseTries()
    this.#callers.refuseDue(now, this.outage)
    this.gather()
    return undefined
  }

  /**
   * Returns the clock time at which to call `wake` if no step is due before. @param now time of the decision to send no
   * call.
   */
  nextCheck(now: number): number {
    const { first } = this.reserved
    const isWanted = this.#callers.queue.first !== undefined
    let at = Infinity
    // mutant: permits-without-timer
    if (first) at = this.#callers.firstAnswered ? first.from : first.until
    if (!this.call) at = Math.min(at, this.#seekFrom(now))
    // mutant: quiet-without-timer
    if (isWanted && this.quietUntil > now) at = Math.min(at, this.quietUntil)
    // mutant: returns-without-timer
    if (this.reserved.isOwing && this.outage) at = Math.min(at, this.retryAt)
    return at
  }

  /** Returns the clock time from which to request earlier instants for waiters that have a reserved one. */
  #seekFrom(now: number): number {
    const { last } = this.reserved
    const isLater = last !== undefined && last.from > Math.max(this.pace.seekAt, now)
    return isLater && this.#callers.queue.first ? this.pace.seekAt : Infinity
  }

  /** Returns the permits that can no longer be used. */
  #returnOver(now: number): void {
    // mutant: late-permit
    for (let { first } = this.reserved; first && first.until < now; { first } = this.reserved) {
      if (this.#callers.queue.first) this.#noteUse(first, now)
      this.reserved.giveBackFirst()
      this.hasUnused = true
    }
  }

  /** Takes permits that are valid now, and returns those that no waiter can use. */
  #grant(now: number): Grant | undefined {
    const isBatch = this.terms.batch > 1
    // mutant: early-permit
    for (let { first } = this.reserved; first && first.from <= now; { first } = this.reserved) {
      const waiter = this.#callers.firstFor(costOf(first), isBatch)
      if (waiter) {
        this.#noteUse(first, now)
        this.reserved.take(waiter.cost)
        this.#callers.leave(waiter, true)
        this.left()
        return { waiter, at: first.engineAt }
      }
      // A later caller may still want the rest of the batch.
      if (isBatch && this.#callers.waiting === 0) return undefined
      this.reserved.giveBackFirst()
    }
    return undefined
  }

  /**
   * Records the delay of a permit. Permits of a batch are left out: some are used as soon as they are valid, and others
   * when a caller comes, so their times do not measure the latency.
   */
  #noteUse({ earliest }: ReservedInstant, now: number): void {
    if (this.terms.batch === 1) this.pace.noteUse(earliest, now)
  }

  /**
   * Keeps the reserved permits, and handles the waiters without one. `#refuseTries` refuses tries later, after the
   * permits were given to their callers.
   */
  #settle({ request, terms, units, waiters }: Call, answer: PermitReservation, now: number): void {
    const { reserved, earliest: decidedAt } = answer
    this.hasUnused = false
    // The first units are for waiters that already have a permit.
    const earlier = reserved.units.length - units.length
    // If the limits have changed since the call, only the permits in the reply are used.
    const isOutdated = terms !== this.terms
    // The number of permits that earlier waiters of each size want, because these are served in order.
    const behind = new Map<number, number>()
    for (const [index, { n, at }] of reserved.units.entries()) {
      const isForNow = units[index - earlier]?.within === 0
      if (n > 0) {
        const cost = { n, amounts: request.units[index]!.amounts }
        const left = terms.costs.share(cost)
        if (index >= earlier && this.pace.isBrief) this.pace.charge(left)
        this.#keep(reservedInstant(at, cost, left, answer, request.hold, isForNow), now)
      } else if (index >= earlier && !isOutdated) {
        const fades = at === reserved.fadesAt
        const refusal = { ahead: at - reserved.now, decidedAt, fades, now }
        if (terms.batch > 1) this.#refusedBatch(waiters, refusal)
        else {
          const waiter = waiters[index - earlier]!
          const others = behind.get(waiter.n) ?? 0
          this.#refused(waiter, others, refusal)
          if (waiter.isQueued && !(waiter instanceof TryWaiter)) behind.set(waiter.n, others + waiter.n)
        }
      }
    }
    if (this.reserved.first) this.pace.unservedSince = undefined
    // Tries that came in the meantime get no permit either.
    const quiet = this.quietUntil - now
    if (quiet > 0) {
      for (const waiter of [...this.#callers.tries])
        if (!waiters.includes(waiter)) this.refusedTries.push([waiter, quiet])
    }
  }

  /**
   * Refuses the tries that the newest reply refuses. If permits of this reply could not be used in time, requests
   * permits for these tries once more instead, because the permits are returned.
   */
  #refuseTries(): void {
    if (this.refusedTries.length === 0) return
    const tries = this.refusedTries
    this.refusedTries = []
    for (const [waiter, readyIn] of tries) {
      // A try that came after the call has no answer yet.
      if (!waiter.isQueued || isUnanswered(waiter)) continue
      if (this.hasUnused && !waiter.isRepeated) {
        // mutant: endless-tries
        waiter.isRepeated = true
        waiter.explanation = undefined
        this.pace.open()
        continue
      }
      if (waiter.explanation) waiter.explanation = notBefore(waiter.explanation, readyIn)
      this.#callers.refuse(waiter, this.#errors.busy())
    }
  }

  #keep(instant: ReservedInstant, now: number): void {
    const { from, until } = instant
    // If the reply took too long, its permits can't be used any more, and the next hold is longer.
    if (from <= until && until >= now) return this.reserved.add(instant)
    this.reserved.giveBack([returned(instant)])
    this.hasUnused = true
  }

  /** Handles waiters for which nothing more could be reserved: the remaining permits go to the first of them. */
  #refusedBatch(waiters: readonly PermitWaiter[], refusal: Refusal): void {
    let open = this.reserved.openPermits(refusal.now)
    for (const waiter of waiters) {
      if (waiter.n <= open) open -= waiter.n
      else this.#refused(waiter, undefined, refusal)
    }
  }

  /**
   * Handles a waiter for which nothing could be reserved. @param others number of permits ahead of its own; undefined
   * if another unit may have room for it.
   */
  #refused(waiter: PermitWaiter, others: number | undefined, refusal: Refusal): void {
    const { ahead, decidedAt } = refusal
    if (!waiter.isQueued) return
    if (waiter instanceof TryWaiter) return void this.refusedTries.push([waiter, ahead])
    // The next call requests the returned permits again.
    if (this.hasUnused) return
    const deadline = waiter.waitLimit?.deadline ?? Infinity
    // Others may settle less than they have estimated.
    if (others !== undefined && deadline < Infinity && !waiter.cost.amounts) {
      const turn = ahead + leastDelay(this.terms.windows, others)
      if (decidedAt + turn > deadline) {
        return this.#callers.refuse(waiter, this.#errors.tooLate(waiter.waitLimit!.wait, turn))
      }
    }
    this.pace.refused(refusal, this.terms, this.reserved.first)
  }
}

/** Returns the request for an explanation. @param ahead the cost of the permits ahead. */
export function explainOf(cost: Cost, { n, amounts }: Cost): Explain {
  return { ...cost, ahead: n, amountsAhead: amounts }
}

/** Returns the explanation in a reply. @param place number of callers ahead. */
export function explanationIn({ now, pausedUntil, explained }: Reserved, place: number): Explanation {
  return explanationOf(explained!, place, now, pausedUntil > now)
}

/** Returns the same explanation, with at least this time until a permit is available. @param readyIn milliseconds. */
function notBefore(explanation: Explanation, readyIn: number): Explanation {
  if (explanation.readyIn >= readyIn) return explanation
  const { waitsFor } = explanation
  return { ...explanation, waitsFor: waitsFor === 'nothing' ? 'limit' : waitsFor, readyIn }
}
