import { wallOf, type Clock } from '../../base/clock.js'
import type { Tenant } from '../../base/lane.js'
import type { ClaimSetLock } from '../../core/lock.js'
import type { PermitsClaim } from '../../engine/claim.js'
import type { Awaitable, PermitReservation } from '../../engine/contract.js'
import type { ReservePermits } from '../../engine/limits/reservation.js'
import { BusyError, ClosedError, UnavailableError } from '../../base/errors.js'
import { runtimeTimers } from '../../base/runtime-timers.js'
import { MIN_DELAY, type Waiters } from '../../base/waiters.js'
import { PermitWaiter, type CallersOwner } from '../callers.js'
import type { Rules, Taken } from '../counter.js'
import { isSameCost, sumOf, NOTHING, type Cost } from '../../engine/limits/cost.js'
import type { CostRules, Costs } from '../costs.js'
import {
  optionsOf,
  tenantOf,
  termsOf,
  type AcquireOptions,
  type TenantOptions,
  type Terms,
} from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { LocalPermits } from '../local/local-permits.js'
import { PermitCounter } from '../local/permit-counter.js'
import { pauseTime, Times } from '../times.js'
import { Permit, type PermitGiver } from '../permit.js'
import { BoxCallers, TryWaiter } from './box-callers.js'
import type { BoxTerms } from './box-limiter-options.js'
import { NOW, outcomeOf, type BoxPermits, type TryOutcome } from './box-permits.js'
import type { LatencyEstimator } from './latency-estimator.js'
import { Pace, RETRY } from './pace.js'
import { explainOf, explanationIn, ReservationMachine, type Request } from './reservation-machine.js'

/** The box of the limiters, as far as they need it. */
export interface LimiterSource {
  readonly clock: Clock
  /** The name of the engine for messages. */
  readonly engine: string
  /** The session ID of the box. */
  readonly session: string
  /** Sends a request. Once the box is closed, rejects with its error. */
  readonly ask: (request: ReservePermits) => Awaitable<PermitReservation>
  /** Returns the semaphore of a limiter with a concurrency. */
  readonly lock: (claim: PermitsClaim) => ClaimSetLock
}

/** Returns the error of a caller with these terms if it may not wait, because too many do. */
export type Full = (terms: Terms) => BusyError | undefined

/** The box of a client. */
export interface ClientSource extends LimiterSource {
  /** The estimate of the latency, which all clients of the box share. */
  readonly meter: LatencyEstimator
}

/**
 * Serves the callers of this process that want permits of one limiter of an engine. They share one queue, one timer,
 * and one call to the engine at a time. Reserved permits are used in the order of the queue. Each may be used only
 * within a certain time, even if this process was paused. A permit that comes too late is returned, and another one
 * requested.
 *
 * `ReservationMachine` decides. The client has the clock, the timer, the microtasks and the calls: it enters callers,
 * runs the machine's next step in a microtask (`#step`), sends its calls (`#send`), and resolves the promises.
 */
export class ReservationClient implements BoxPermits, PermitGiver, CallersOwner {
  readonly #source: ClientSource
  readonly #id: string
  readonly #errors: LimiterErrors
  readonly #callers: BoxCallers
  readonly #waiters: Waiters<PermitWaiter>
  readonly #machine: ReservationMachine
  /** The limits of this process alone while the engine is unreachable, if it has any, and the limiter for them. */
  readonly #share: Rules | undefined
  readonly #fallback: LocalPermits | undefined
  readonly #again: BoxPermits['acquire']
  /** Whether `#step` is about to run as a microtask. */
  #stepping = false
  /** The answer to the newest call for waiters. */
  #answer: Awaitable<PermitReservation> | undefined
  #closed: Error | undefined
  #usedAt: number
  readonly #next = (): void => {
    this.#stepping = false
    this.#step()
  }
  readonly #full = ({ tenant }: Terms): BusyError | undefined =>
    this.#errors.queueFull(this.#machine.terms, this.waiting, tenant, this.callersOf(tenant))

  /**
   * @param id the ID of the limiter in the engine.
   * @param again requests a permit of the engine for a waiter of this process alone, when the engine is back.
   */
  constructor(
    source: ClientSource,
    terms: BoxTerms,
    id: string,
    errors: LimiterErrors,
    again: BoxPermits['acquire'] = (cost, options) => this.acquire(cost, options),
  ) {
    this.#source = source
    this.#id = id
    this.#errors = errors
    this.#usedAt = source.clock.now()
    this.#callers = new BoxCallers(source.clock, this, errors)
    this.#waiters = this.#callers.queue
    this.#machine = new ReservationMachine(terms, this.#callers, new Pace(source.meter), errors)
    this.#again = again
    if (!terms.share) return
    const share = (this.#share = { ...terms.share })
    const times = new Times(share.windows, source.clock, wallOf(source.clock))
    this.#fallback = new LocalPermits(share, times, new PermitCounter(share, times), errors)
  }

  get costs(): CostRules {
    return this.#machine.terms.costs
  }

  acquire(costs?: Costs, options?: AcquireOptions): Promise<Permit> {
    const cost = this.costs.cost(costs)
    const terms = termsOf(options)
    return this.acquireBy(cost, terms, this.#source.clock.now() + terms.wait, this.#full)
  }

  /**
   * Waits for a permit until `deadline`, with the other options checked.
   * @param deadline clock time. @param full returns the error if no further caller may wait.
   */
  acquireBy(cost: Cost, terms: Terms, deadline: number, full: Full): Promise<Permit> {
    try {
      const { wait, signal, priority, tenant } = terms
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw this.#errors.aborted(signal)
      const { callers } = this.#waiters
      const now = (this.#usedAt = this.#source.clock.now())
      if (callers === 0) {
        const permit = this.#atHand(cost, now)
        if (permit) return Promise.resolve(permit)
      }
      if (this.usesFallback) return this.#acquireLocally(cost, terms, deadline, now)
      const { quietUntil, pace } = this.#machine
      const isQuiet = quietUntil > now
      if (wait === 0)
        return isQuiet && !this.outage ? Promise.reject(this.#errors.busy()) : this.#try(cost, terms)
      if (full(terms)) return this.#acquireIfRoom(cost, terms, deadline, full)
      const isLate = isQuiet && deadline < pace.turn && !cost.amounts
      if (isLate && this.#waiters.before(priority, tenant, cost.n).callers === callers) {
        throw this.#errors.tooLate(wait, pace.turn - now)
      }
      if (deadline < Infinity) pace.openBeyondPart()
      return new Promise(settle => {
        this.#enter(new PermitWaiter(cost, this.costs.share(cost), 0, settle), terms, deadline, now)
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async decide(costs?: Costs): Promise<TryOutcome> {
    const cost = this.costs.cost(costs)
    if (this.#closed) throw this.#closed
    const now = (this.#usedAt = this.#source.clock.now())
    if (this.usesFallback)
      return {
        outcome: await outcomeOf(this.#acquireLocally(cost, termsOf(NOW), now, now)),
        explanation: undefined,
      }
    return new Promise(resolve => {
      const settle = (permit: Permit | Promise<Permit>): void => {
        const { explanation } = waiter
        resolve(outcomeOf(permit).then(outcome => ({ outcome, explanation })))
      }
      const waiter = new TryWaiter(cost, this.costs.share(cost), settle, true)
      this.#enter(waiter, termsOf(NOW), Infinity, now)
    })
  }

  /** @param later returns the cost of the permits that callers of a tenant want before they join this queue. */
  async explain(
    costs?: Costs,
    options?: TenantOptions,
    later = (_: Tenant | undefined): Cost => NOTHING,
  ): Promise<Explanation> {
    const machine = this.#machine
    const cost = this.costs.cost(costs)
    const tenant = tenantOf(options)
    if (this.#closed) throw this.#closed
    const { waiting, wanted } = this.#callers.before(tenant, this.costs.share(cost))
    const ahead = this.#callers.costOf(Math.max(wanted - machine.reserved.permits, 0))
    const explain = explainOf(cost, sumOf(ahead, later(tenant)))
    const { reserved } = await this.#send(machine.request(this.#source.clock.now(), { explain }))
    return explanationIn(reserved, waiting)
  }

  async pauseUntil(time: Date | number): Promise<void> {
    const now = wallOf(this.#source.clock)()
    const until = pauseTime(time, now)
    if (this.#closed) throw this.#closed
    if (until > now) await this.#tell(until - now)
  }

  async resume(): Promise<void> {
    if (this.#closed) throw this.#closed
    await this.#tell(0)
    this.#machine.resumed()
    this.#goOn()
  }

  isIdle(since: number): boolean {
    const { call, due, reserved } = this.#machine
    const isBusy = call !== undefined || due !== 'none' || reserved.isOwing
    return !this.#waiters.first && !reserved.first && !isBusy && this.#usedAt < since
  }

  change(terms: BoxTerms): void {
    this.#machine.changed(terms)
    if (terms.share) Object.assign(this.#share!, terms.share)
    this.#fallback?.limitsChanged()
    this.#goOn()
  }

  shut(error: Error): void {
    this.#closed ??= error
    this.#fallback?.shut()
  }

  refuseAll(): void {
    this.#callers.refuseAll(this.#closed!)
    this.#fallback?.refuseAll()
  }

  async end(): Promise<void> {
    await this.#callers.end()
    await this.#fallback?.end()
    this.#waiters.checkAt(Infinity, 0)
    // The reply may return permits, or reserve permits that no waiter wants any more. If the call failed, the permits
    // that it should have returned may have to be returned again.
    await Promise.resolve(this.#answer).catch(() => undefined)
    const { reserved } = this.#machine
    reserved.giveBackWhere(() => true)
    if (!reserved.isOwing) return
    const owed = { returns: reserved.takeReturns(), overdrawn: reserved.takeOverdrawn() }
    for (let left = RETURN_CALLS; left > 0; left--) {
      try {
        await this.#send(this.#machine.request(this.#source.clock.now(), owed))
        return
      } catch (error) {
        // Permits that may have been returned must not be returned twice, and count as used.
        if (!(error instanceof UnavailableError) || left === 1) return
        await new Promise<void>(resolve => void this.#source.clock.after(RETRY, resolve, true))
      }
    }
  }

  unused({ cost, at }: Taken): void {
    this.#machine.refunded({ ...cost, at, from: at })
    this.#goOn()
  }

  settled({ at }: Taken, change: readonly number[]): void {
    this.#machine.settled(change, at)
    this.#goOn()
  }

  get outage(): Error | undefined {
    return this.#machine.outage
  }

  /** Whether it grants permits now although the engine is unreachable. */
  get usesFallback(): boolean {
    return this.outage !== undefined && this.#fallback !== undefined
  }

  /** Number of callers that wait for their turn, not only for a reply. */
  get waiting(): number {
    return this.#callers.waiting
  }

  /** Number of waiting callers of a tenant, or of its group; 0 without one. */
  callersOf(tenant: Tenant | undefined): number {
    return this.#waiters.callersOf(tenant)
  }

  /**
   * Resolves when its callers have their permits, or must wait for their turn. Waits for at most {@link MAX_CALLS}
   * replies, because a steady stream of callers could delay it forever.
   */
  async served(): Promise<void> {
    await othersServed()
    for (let calls = 0; calls < MAX_CALLS; calls++) {
      const { call, quietUntil } = this.#machine
      if (!call || this.waiting === 0 || quietUntil > this.#source.clock.now()) return
      await Promise.resolve(this.#answer).catch(() => undefined)
      await othersServed()
    }
  }

  /** Checks whether the engine is unreachable, without a request for permits. Never rejects. */
  look(): Promise<void> {
    return this.#ask(this.#source.clock.now(), true)
  }

  /** Called when another request did not reach the engine. */
  away(error: Error): void {
    this.#machine.away(error, this.#source.clock.now())
  }

  /** Returns a permit that the engine does not count, or one of the engine if it is reachable again before. */
  async #acquireLocally(cost: Cost, terms: Terms, deadline: number, now: number): Promise<Permit> {
    const costs = this.costs.costsOf(cost)
    if (this.#machine.takeRetry(now)) void this.#ask(now, true)
    try {
      return await this.#fallback!.acquire(costs, rest(terms, deadline, now))
    } catch (error) {
      if (error !== ENGINE_REACHABLE) throw error
      return this.#again(costs, rest(terms, deadline, this.#source.clock.now()))
    }
  }

  /** Returns a permit of a batch that can be used now. */
  #atHand(cost: Cost, now: number): Permit | undefined {
    const { reserved } = this.#machine
    const { first } = reserved
    if (!first || first.from > now || first.until < now) return undefined
    if (cost.amounts ? !isSameCost(first.cost, cost) : first.left < cost.n) return undefined
    return new Permit(this, cost, reserved.take(cost).engineAt)
  }

  #try(cost: Cost, terms: Terms): Promise<Permit> {
    return new Promise(settle => {
      const waiter = new TryWaiter(cost, this.costs.share(cost), settle, false)
      this.#enter(waiter, terms, Infinity, this.#source.clock.now())
    })
  }

  /**
   * Takes a permit that is available now. Otherwise waits, unless too many callers wait after others have got theirs.
   */
  async #acquireIfRoom(cost: Cost, terms: Terms, deadline: number, full: Full): Promise<Permit> {
    try {
      // While the turns of all waiters are far ahead, a request is useless.
      if (this.#machine.quietUntil <= this.#source.clock.now() || this.outage)
        return await this.#try(cost, terms)
    } catch (error) {
      if (!(error instanceof BusyError)) throw error
    }
    await othersServed()
    const error = full(terms)
    if (error) throw error
    return this.acquireBy(cost, terms, deadline, full)
  }

  #enter(waiter: PermitWaiter, terms: Terms, deadline: number, now: number): void {
    this.#callers.enter(waiter, terms, deadline)
    this.#machine.gather()
    this.#goOn(now)
  }

  gaveUp(): void {
    this.#machine.left()
    this.#goOn()
  }

  timeOver(): void {
    if (this.#machine.wake()) this.#step()
  }

  /** Runs the step that is due in a microtask, or sets the timer. */
  #goOn(now = this.#source.clock.now()): void {
    if (this.#machine.due === 'none') this.#waiters.checkAt(this.#machine.nextCheck(now), now)
    else if (!this.#stepping) {
      this.#stepping = true
      // This runs for each permit, and `queueMicrotask` would take several times as long.
      void PASSED.then(this.#next)
    }
  }

  /**
   * Takes the step that is due. One waiter gets its permit in a step, and the next waiter in a later microtask, after
   * the code of the first caller has run, which may take a while.
   */
  #step(): void {
    const machine = this.#machine
    const now = this.#source.clock.now()
    if (machine.due === 'gather') void this.#ask(now, false)
    else if (machine.due === 'give') {
      this.#usedAt = now
      const grant = machine.give(now)
      if (grant) grant.waiter.settle(new Permit(this, grant.waiter.cost, grant.at))
    }
    this.#goOn(now)
  }

  /** Calls the engine if the machine needs it. @param isProbe whether to call it anyway. */
  async #ask(now: number, isProbe: boolean): Promise<void> {
    const call = this.#machine.ask(now, isProbe)
    if (!call) return
    try {
      const answer = await (this.#answer = this.#send(call.request))
      this.#back()
      this.#machine.replied(answer, this.#source.clock.now())
    } catch (error) {
      this.#failed(error as Error)
    }
    this.#goOn()
  }

  #send(request: Request): Awaitable<PermitReservation> {
    const { session, ask } = this.#source
    return ask({ limiter: this.#id, session, ...request })
  }

  async #tell(pause: number): Promise<void> {
    const askedAt = this.#source.clock.now()
    const answer = await this.#send(this.#machine.request(askedAt, { pause }))
    this.#back()
    this.#machine.learn(answer, askedAt, this.#source.clock.now())
  }

  /** Called when the engine has answered. */
  #back(): void {
    if (this.outage && !this.#closed) this.#fallback?.refuseAll(ENGINE_REACHABLE)
  }

  #failed(error: Error): void {
    const now = this.#source.clock.now()
    this.#machine.failed(error, now)
    if (error instanceof ClosedError) {
      this.shut(error)
      this.refuseAll()
    } else if (this.#fallback) for (const waiter of [...this.#waiters]) this.#moveToFallback(waiter, now)
  }

  /** Lets a waiter continue without the engine, for the rest of its wait. */
  #moveToFallback(waiter: PermitWaiter, now: number): void {
    const { lane, priority } = waiter.rank!
    const { wait = Infinity, signal, deadline = Infinity } = waiter.waitLimit ?? {}
    const isTry = waiter instanceof TryWaiter
    const terms = { wait: isTry ? 0 : wait, signal, priority, tenant: isTry ? undefined : lane.tenant }
    this.#callers.leave(waiter)
    this.#machine.left()
    waiter.settle(this.#acquireLocally(waiter.cost, terms, deadline, now))
  }
}

/** The options for the rest of a wait. */
function rest(terms: Terms, deadline: number, now: number): AcquireOptions {
  // A wait of 0 would mean no wait.
  return optionsOf(terms, terms.wait === 0 ? 0 : Math.max(deadline - now, MIN_DELAY))
}

/** Resolves when the callers whose permits have arrived have them, because each gets its permit in a microtask. */
function othersServed(): Promise<void> {
  return new Promise(resolve => void runtimeTimers.setImmediate(resolve))
}

/** Error that moves the fallback's waiters back to the engine. */
const ENGINE_REACHABLE = new Error('the engine is reachable again')
/** Maximum number of calls that a caller awaits for the permits of others. */
const MAX_CALLS = 8
/** Maximum number of calls that return the permits of a limiter at its end. */
const RETURN_CALLS = 2
const PASSED = Promise.resolve()
