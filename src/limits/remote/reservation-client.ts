import { wallOf } from '../../clock.js'
import type { Awaitable, PermitReservation } from '../../engine/contract.js'
import { BusyError, ClosedError, UnavailableError } from '../../errors.js'
import type { Waiters } from '../../waiters.js'
import type { CallersOwner } from '../callers.js'
import type { Taken } from '../counter.js'
import { termsOf, whole, type AcquireOptions, type Terms } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { PermitWaiter } from '../local/permit-waiter.js'
import { pauseTime } from '../local/times.js'
import { Permit, type PermitGiver } from '../permit.js'
import type { Unit } from '../../engine/limits/reserve-permits.js'
import { ReservationReplies, explanationOf } from './reservation-replies.js'
import { PollSchedule } from './poll-schedule.js'
import { BoxCallers, isUnanswered, TryWaiter } from './box-callers.js'
import { keeps, type BoxTerms } from './box-limiter-options.js'
import { NOW, tried, type BoxPermits, type TryOutcome } from './box-permits.js'
import { othersServed } from './others-served.js'
import { MIN_WAIT, Outage, RETRY } from './outage.js'
import { ReservationCalls, type Decided, type ReservationSource, type Wanted } from './reservation-calls.js'
import { allReturned, ReservedPermits, type ReservedInstant } from './reserved-permits.js'
import { earlierUnits, NOTHING, wantedUnits, type Situation } from './wanted-units.js'

/**
 * Serves the callers of this process that want permits of one limiter of an engine. They share one queue, one timer,
 * and one call to the engine at a time. Reserved permits are used in the order of the queue. Each may be used only
 * within a certain time, even if this process was paused. A permit that comes too late is returned, and another one
 * requested.
 *
 * A caller enters the queue (`#enter`). At the end of the current task, one call reserves permits for all (`#ask`). Its
 * reply assigns permits; waiters without one are refused, or included in a later call (`ReservationReplies.settle`).
 * Each permit is given to its caller when it becomes valid (`#handOut`).
 */
export class ReservationClient implements BoxPermits, PermitGiver, CallersOwner<Permit> {
  readonly #source: ReservationSource
  #terms: BoxTerms
  readonly #errors: LimiterErrors
  readonly #callers: BoxCallers
  readonly #waiters: Waiters<PermitWaiter>
  readonly #reserved = new ReservedPermits()
  readonly #calls: ReservationCalls
  readonly #pace: PollSchedule
  readonly #answers: ReservationReplies
  readonly #outage: Outage
  /** Whether a call is about to be made in a microtask. */
  #scheduled = false
  #calling = false
  /** The answer to the newest call for waiters. */
  #answer: Awaitable<PermitReservation> | undefined
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #closed: Error | undefined
  #usedAt: number
  readonly #next = (): void => this.#handOut()
  readonly #isFull = (): boolean => this.#callers.waiting >= this.#terms.queue

  /**
   * @param id the ID of the limiter in the engine.
   * @param again requests a permit of the engine for a waiter of this process alone, when the engine is back.
   */
  constructor(
    source: ReservationSource,
    terms: BoxTerms,
    id: string,
    errors: LimiterErrors,
    again: BoxPermits['acquire'] = (n, options) => this.acquire(n, options),
  ) {
    this.#source = source
    this.#terms = terms
    this.#errors = errors
    this.#usedAt = source.clock.now()
    this.#callers = new BoxCallers(source.clock, this, errors)
    this.#waiters = this.#callers.queue
    this.#calls = new ReservationCalls(source, id)
    this.#pace = new PollSchedule(this.#reserved, this.#calls)
    this.#answers = new ReservationReplies(this.#callers, this.#reserved, this.#pace, this.#calls, errors)
    this.#outage = new Outage(source.clock, terms.share, errors, again)
  }

  acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    try {
      if (n !== 1) this.#check(n)
      const terms = termsOf(options)
      return this.acquireBy(n, terms, this.#source.clock.now() + terms.wait, this.#isFull)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Waits for a permit until `deadline`, with the other options checked.
   * @param deadline clock time. @param isFull whether no further caller may wait.
   */
  acquireBy(n: number, terms: Terms, deadline: number, isFull: () => boolean): Promise<Permit> {
    try {
      const { wait, signal, priority } = terms
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw this.#errors.aborted(signal)
      const { callers } = this.#waiters
      const now = (this.#usedAt = this.#source.clock.now())
      if (callers === 0) {
        const permit = this.#atHand(n, now)
        if (permit) return Promise.resolve(permit)
      }
      if (this.goesWithout) return this.#without(n, rest(terms, deadline, now), now)
      const { quietUntil, nextTurn } = this.#pace
      const isQuiet = quietUntil > now
      if (wait === 0)
        return isQuiet && !this.outage ? Promise.reject(this.#errors.busy()) : this.#try(n, terms)
      if (isFull()) return this.#acquireIfRoom(n, terms, deadline, isFull)
      if (isQuiet && this.#waiters.before(priority).callers === callers && deadline < nextTurn) {
        throw this.#errors.tooLate(wait, nextTurn - now)
      }
      if (deadline < Infinity) this.#pace.askBeyondPart()
      return new Promise(settle => {
        this.#enter(new PermitWaiter(n, 0, settle), terms, deadline)
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async decide(): Promise<TryOutcome> {
    if (this.#closed) throw this.#closed
    const now = (this.#usedAt = this.#source.clock.now())
    if (this.goesWithout) return { outcome: await tried(this.#without(1, NOW, now)), explanation: undefined }
    return new Promise(resolve => {
      const settle = (permit: Permit | Promise<Permit>): void => {
        const { explanation } = waiter
        resolve(tried(permit).then(outcome => ({ outcome, explanation })))
      }
      const waiter = new TryWaiter(1, settle, true)
      this.#enter(waiter, termsOf(NOW), Infinity)
    })
  }

  /** @param later number of permits that callers want which have yet to join this queue. */
  async explain(n = 1, later = 0): Promise<Explanation> {
    this.#check(n)
    if (this.#closed) throw this.#closed
    const { callers, permits } = this.#callers.before
    const ahead = Math.max(permits - this.#reserved.permits, 0) + later
    const { reserved } = await this.#call({ explain: { n, ahead } })
    return explanationOf(reserved, callers)
  }

  async pauseUntil(time: Date | number): Promise<void> {
    const now = wallOf(this.#source.clock)()
    const until = pauseTime(time, now)
    if (this.#closed) throw this.#closed
    if (until > now) await this.#tell({ pause: until - now })
  }

  async resume(): Promise<void> {
    if (this.#closed) throw this.#closed
    await this.#tell({ pause: 0 })
    this.#pace.askNow()
    this.#schedule()
  }

  isIdle(since: number): boolean {
    const owes = this.#calling || this.#scheduled || this.#reserved.owes
    return !this.#waiters.first && !this.#reserved.first && !owes && this.#usedAt < since
  }

  change(terms: BoxTerms): void {
    const before = this.#terms
    this.#terms = terms
    this.#callers.refuseAbove(terms.maxPermits)
    this.#outage.change(terms.share)
    // A permit that is returned and requested again would come after those of other processes.
    if (!keeps(before, terms)) this.#reserved.giveBackWhere(() => true)
    this.#pace.askNow()
    this.#schedule()
  }

  shut(error: Error): void {
    this.#closed ??= error
    this.#outage.shut()
  }

  refuseAll(): void {
    this.#callers.refuseAll(this.#closed!)
    this.#outage.refuseAll()
  }

  async end(): Promise<void> {
    await this.#callers.end()
    await this.#outage.end()
    this.#waiters.checkAt(Infinity, 0)
    // The reply may return permits, or reserve permits that no waiter wants any more. If the call failed, the permits
    // that it should have returned may have to be returned again.
    await Promise.resolve(this.#answer).catch(() => undefined)
    this.#reserved.giveBackWhere(() => true)
    const returns = this.#reserved.takeReturns()
    if (returns.length === 0) return
    for (let left = RETURN_CALLS; left > 0; left--) {
      try {
        await this.#call({ returns })
        return
      } catch (error) {
        // Permits that may have been returned must not be returned twice, and count as used.
        if (!(error instanceof UnavailableError) || left === 1) return
        await new Promise<void>(resolve => void this.#source.clock.after(RETRY, resolve, true))
      }
    }
  }

  released(): void {
    // The number of permits in use is not limited.
  }

  unused({ n, at }: Taken): void {
    this.#reserved.giveBack([{ n, at, from: at }])
    this.#schedule()
  }

  get outage(): Error | undefined {
    return this.#outage.error
  }

  /** Whether it grants permits now although the engine is out of reach. */
  get goesWithout(): boolean {
    return this.#outage.goesWithout
  }

  /** Number of callers that wait for their turn, not only for a reply. */
  get waiting(): number {
    return this.#callers.waiting
  }

  /**
   * Resolves when its callers have their permits, or must wait for their turn. A steady stream of callers delays it only
   * for some calls.
   */
  async settled(): Promise<void> {
    await othersServed()
    for (let calls = 0; calls < MAX_CALLS && this.#isUnsettled; calls++) {
      await Promise.resolve(this.#answer).catch(() => undefined)
      await othersServed()
    }
  }

  /** Whether a reply may give permits to callers that wait. */
  get #isUnsettled(): boolean {
    return this.#calling && this.waiting > 0 && this.#pace.quietUntil <= this.#source.clock.now()
  }

  /** Checks whether the engine is out of reach, without a request for permits. Never rejects. */
  look(): Promise<void> {
    return this.#ask(true)
  }

  /** Called when another request did not reach the engine. */
  away(error: Error): void {
    this.#outage.began(error)
  }

  /** Returns a permit that the engine does not count. */
  #without(n: number, options: AcquireOptions | undefined, now: number): Promise<Permit> {
    if (this.#outage.takeRetry(now)) void this.#ask(true)
    return this.#outage.acquire(n, options, now)
  }

  /** Returns a permit of a batch that can be used now. */
  #atHand(n: number, now: number): Permit | undefined {
    const instant = this.#reserved.first
    if (!instant || instant.left < n || instant.from > now || instant.until < now) return undefined
    return new Permit(this, n, this.#reserved.take(n).at, 0, 0)
  }

  #try(n: number, terms: Terms): Promise<Permit> {
    return new Promise(settle => {
      this.#enter(new TryWaiter(n, settle, false), terms, Infinity)
    })
  }

  /** Takes a permit that is available now; otherwise waits if, once others have theirs, few enough callers wait. */
  async #acquireIfRoom(n: number, terms: Terms, deadline: number, isFull: () => boolean): Promise<Permit> {
    try {
      // While the turns of all waiters are far off, a request would be of no use.
      if (this.#pace.quietUntil <= this.#source.clock.now() || this.outage) return await this.#try(n, terms)
    } catch (error) {
      if (!(error instanceof BusyError)) throw error
    }
    await othersServed()
    if (isFull()) throw this.#errors.queueFull(this.#terms.queue)
    return this.acquireBy(n, terms, deadline, isFull)
  }

  #enter(waiter: PermitWaiter, terms: Terms, deadline: number): void {
    this.#callers.enter(waiter, terms, deadline)
    this.#schedule()
    this.#waiters.setTimer()
  }

  /** Schedules one call for all requests of the current task. */
  #schedule(): void {
    // Callers that get their permits now may request the next ones together. `#handOut` calls this when it is done.
    if (this.#scheduled || this.#calling || this.#handing) return
    this.#scheduled = true
    void PASSED.then(() => {
      this.#scheduled = false
      if (!this.#handing) void this.#ask(false)
    })
  }

  /** Reserves the permits that waiters want, if any. @param look whether to send the call anyway. */
  async #ask(look: boolean): Promise<void> {
    if (this.#calling) return
    const now = this.#source.clock.now()
    // Without waiters, reserved permits are returned at once.
    const isPointless =
      this.#pace.quietUntil > now && (this.#callers.waiting > 0 || this.outage !== undefined)
    const situation = this.#situation(now)
    const { units: wanted, waiters } = isPointless ? NOTHING : wantedUnits(situation)
    // The first call of a process reserves nothing: its reply shows how long the hold must be. A permit with a shorter
    // hold could not be used, and would delay the permits of other processes to the next window.
    const isFirst = wanted.length > 0 && !this.#calls.hasMeasured
    const units = isFirst ? NO_UNITS : wanted
    const deciders =
      isPointless && this.outage ? [] : [...this.#callers.tries].filter(({ isDecision }) => isDecision)
    const before = deciders.length > 0 ? this.#callers.before : undefined
    const ahead = before && units.length === 0 ? Math.max(before.permits - this.#reserved.permits, 0) : 0
    const explain = before && { n: 1, ahead }
    const owes = this.#reserved.owes && (!this.outage || now >= this.#outage.retryAt)
    if (units.length === 0 && !owes && !explain && !look && !isFirst) {
      this.#lookLater(now)
      return
    }
    const returns = this.#reserved.takeReturns()
    // Requested from time to time, because the engine sends no hints about it.
    const earlier = this.#pace.takeLook(now) ? earlierUnits(situation) : NO_UNITS
    // Earlier explanations are stale when the reply arrives.
    for (const waiter of deciders) waiter.explanation = undefined
    this.#calling = true
    const { terms, hold } = situation
    try {
      const answer = await (this.#answer = this.#call({ units: earlier.concat(units), returns, explain }))
      const decided = this.#learn(answer, now)
      const explanation = before && explanationOf(answer.reserved, before.callers)
      for (const waiter of deciders) waiter.explanation = explanation
      if (terms === this.#terms || keeps(terms, this.#terms)) {
        const isOutdated = terms !== this.#terms
        this.#answers.settle(answer.reserved, decided, {
          terms: this.#terms,
          hold,
          units,
          waiters,
          isOutdated,
        })
      } else {
        // Permits that were reserved under a greater limit than the current one are requested again.
        this.#reserved.giveBack(allReturned(answer.reserved, hold))
      }
    } catch (error) {
      // If the call may have returned the permits, they count as used, because they must not be returned twice.
      if (error instanceof UnavailableError) this.#reserved.giveBack(returns)
      this.#failed(error as Error, waiters)
    } finally {
      this.#calling = false
      this.#goOn()
    }
  }

  #situation(now: number): Situation {
    const terms = this.#terms
    const part = this.#calls.part(terms)
    const hold = this.#calls.hold(terms)
    return { waiters: this.#waiters, reserved: this.#reserved, terms, part, hold, now }
  }

  #call(wanted: Wanted): Awaitable<PermitReservation> {
    return this.#calls.ask(this.#terms, this.#pace.horizon(this.#terms, this.#source.clock.now()), wanted)
  }

  async #tell(wanted: Wanted): Promise<void> {
    const askedAt = this.#source.clock.now()
    this.#learn(await this.#call(wanted), askedAt)
  }

  /** Records the state of the limiter in a reply. @param askedAt clock time of the request. */
  #learn(answer: PermitReservation, askedAt: number): Decided {
    this.#outage.ended()
    const decided = this.#calls.learn(answer, askedAt)
    this.#reserved.giveBackUseless(answer.reserved, decided)
    return decided
  }

  /** Handles a call for these waiters that did not reach the engine. */
  #failed(error: Error, waiters: readonly PermitWaiter[]): void {
    this.#calls.failed()
    if (error instanceof ClosedError) {
      this.shut(error)
      return this.refuseAll()
    }
    this.away(error)
    switch (this.#terms.onUnavailable) {
      case 'error':
        for (const waiter of waiters) if (waiter.isQueued) this.#callers.refuse(waiter, error)
        return this.#refuseTries(error)
      case 'closed':
        this.#pace.askNotBefore(this.#outage.retryAt)
        return this.#refuseTries(error)
      default:
        for (const waiter of this.#waiters) this.#goWithout(waiter)
    }
  }

  /** Those that came during the call, too: with the next call, they could wait twice as long. */
  #refuseTries(error: Error): void {
    for (const waiter of [...this.#callers.tries]) this.#callers.refuse(waiter, error)
  }

  /** Lets a waiter continue without the engine, for the rest of its wait. */
  #goWithout(waiter: PermitWaiter): void {
    const now = this.#calls.answeredAt
    const { priority } = waiter.rank!
    const { wait = Infinity, signal, deadline = Infinity } = waiter.waitLimit ?? {}
    const terms = { wait: waiter instanceof TryWaiter ? 0 : wait, signal, priority }
    this.#callers.leave(waiter)
    this.#left()
    waiter.settle(this.#without(waiter.n, rest(terms, deadline, now), now))
  }

  #goOn(): void {
    if (this.#handing) return
    this.#handing = true
    // This runs for each permit, and `queueMicrotask` would take several times as long.
    void PASSED.then(this.#next)
  }

  /**
   * Gives the first waiter its permit if it is valid, and the next waiter in a later microtask, after the code of the
   * first caller has run, which may take a while.
   */
  #handOut(): void {
    this.#handing = false
    const now = (this.#usedAt = this.#source.clock.now())
    this.#callers.refuseLate(now, this.#late)
    this.#returnOver(now)
    if (this.#giveOne(now)) return this.#goOn()
    this.#answers.refuseTries()
    this.#callers.refuseDue(now, this.#late)
    this.#schedule()
    this.#lookLater()
  }

  /** Creates the error of a waiter whose wait has passed; undefined for the usual one. */
  get #late(): ((wait: number) => Error) | undefined {
    const { outage } = this
    return outage && (wait => this.#errors.unreachable(wait, outage))
  }

  /** Returns the permits that can't be used any more. */
  #returnOver(now: number): void {
    for (let { first } = this.#reserved; first && first.until < now; { first } = this.#reserved) {
      if (this.#waiters.first) this.#noteUse(first, now)
      this.#reserved.giveBackFirst()
      this.#answers.wasUnused()
    }
  }

  /** Uses the first reserved instant if its permits are valid now; otherwise returns false. */
  #giveOne(now: number): boolean {
    const { first } = this.#reserved
    if (!first || first.from > now) return false
    const isBatch = this.#terms.batch > 1
    const waiter = this.#callers.firstFor(first.left, isBatch)
    if (waiter) {
      this.#noteUse(first, now)
      this.#reserved.take(waiter.n)
      this.#callers.leave(waiter)
      this.#left()
      waiter.settle(new Permit(this, waiter.n, first.at, 0, 0))
      return true
    }
    // A later caller may still want the rest of the batch.
    if (isBatch && this.#callers.waiting === 0) return false
    this.#reserved.giveBackFirst()
    return true
  }

  /**
   * Some permits of a batch are used as soon as they are valid, and others when a caller comes, so their times are no
   * measure of latency.
   */
  #noteUse({ earliest }: ReservedInstant, now: number): void {
    if (this.#terms.batch === 1) this.#source.meter.note(now - earliest, now)
  }

  /**
   * Sets the next check.
   * @param now when it was decided to send no call; otherwise an event since then would have no timer.
   */
  #lookLater(now = this.#source.clock.now()): void {
    const { first: instant, last } = this.#reserved
    const { first: waiter } = this.#waiters
    const { lookAt, askAgainAt } = this.#pace
    let at = Infinity
    if (instant) {
      at = waiter && !isUnanswered(waiter) ? instant.from : instant.until
      if (waiter && last!.from > lookAt && !this.#calling) at = Math.min(at, lookAt)
    }
    if (waiter && askAgainAt > now) at = Math.min(at, askAgainAt)
    if (this.#reserved.owes && this.outage) at = Math.min(at, this.#outage.retryAt)
    this.#waiters.checkAt(at, now)
  }

  timeOver(): void {
    const now = this.#source.clock.now()
    const { last } = this.#reserved
    const waitsLong = this.#waiters.first !== undefined && last !== undefined && last.from > now
    if (waitsLong && now >= this.#pace.lookAt) void this.#ask(true)
    if (!this.#handing) this.#handOut()
  }

  gaveUp(): void {
    this.#left()
    // Its reserved permits go to the next waiter. Without one they are returned.
    this.#schedule()
  }

  #left(): void {
    // The delay was for waiters that have left, and need not apply to others.
    if (this.#callers.waiting === 0 && !this.outage) this.#pace.askNow()
  }

  #check(n: number): void {
    whole('n', n, 1, this.#terms.maxPermits)
  }
}

/** The options for the rest of a wait. */
function rest(terms: Terms, deadline: number, now: number): Terms {
  return terms.wait === 0 ? terms : { ...terms, wait: Math.max(deadline - now, MIN_WAIT) }
}

/** Maximum number of calls that a caller awaits for the permits of others. */
const MAX_CALLS = 8
/** Maximum number of calls that return the permits of a limiter at its end. */
const RETURN_CALLS = 2
const PASSED = Promise.resolve()
const NO_UNITS: readonly Unit[] = []
