import { InvalidArgumentError, type BusyError, type ClosedError } from '../../base/errors.js'
import type { Counts, Tenant } from '../../base/lane.js'
import { runtimeTimers } from '../../base/runtime-timers.js'
import type { Waiters } from '../../base/waiters.js'
import { Callers, PermitWaiter, type CallersOwner } from '../callers.js'
import type { Counter, Rules, Taken } from '../counter.js'
import { NOTHING, type Cost } from '../../engine/limits/cost.js'
import type { CostRules, Costs } from '../costs.js'
import { tenantOf, termsOf, type AcquireOptions, type TenantOptions, type Terms } from '../limit-options.js'
import { explanationOf, type Decision, type Explanation, type Limiter } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { Permit, type PermitGiver } from '../permit.js'
import type { Times } from '../times.js'

/**
 * The place of a thread in the queue of threads. It stands for the thread's first waiter, and all waiters behind it.
 */
export interface Turns {
  /** Returns a number greater than that of every earlier caller, in any thread. @param n permits that it wants. */
  arrive(n: number): number
  /** Reports the waiters of this thread. @param gaveUp whether a waiter left that others may have waited for. */
  reportWaiters(waiters: Waiters<PermitWaiter>, gaveUp: boolean): void
  /** Reports that waiters of this thread got permits, and that no more are available now. */
  reportDone(): void
}

/** Maximum delay of a timer that even spacing makes up for, in milliseconds. */
const LATENESS = 5
/** Maximum time for which the wall clock is assumed to advance like the monotonic one, in milliseconds. */
const MAX_SLEEP = 60_000
const NO_CALLERS: Counts = { callers: 0, permits: 0 }

/**
 * Decides about the permits of one counter, and gives them to waiters. Each permit counts from the moment at which its
 * caller gets it. The next waiter gets its permit only after the code of that caller has run.
 */
export class LocalPermits implements Omit<Limiter, 'run'>, PermitGiver, CallersOwner {
  readonly #rules: Rules
  readonly #times: Times
  readonly #counter: Counter
  readonly #errors: LimiterErrors
  readonly #turns: Turns | undefined
  /** Returns the permits of the same key, which may have replaced this one; undefined if none can replace it. */
  successor: (() => LocalPermits) | undefined
  /** Created when a caller waits for the first time. */
  #callers: Callers | undefined
  #closed: ClosedError | undefined
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #late = 0
  /** The newest waiters beyond the maximum number. They stay if others get their permits now. */
  #beyond: PermitWaiter[] = []
  /** Whether a waiter got a permit since the queue was last idle. */
  #gave = false
  #next: (() => void) | undefined

  /** @param turns the queue of threads, if several share the limits. */
  constructor(rules: Rules, times: Times, counter: Counter, errors: LimiterErrors, turns?: Turns) {
    this.#rules = rules
    this.#times = times
    this.#counter = counter
    this.#errors = errors
    this.#turns = turns
  }

  get costs(): CostRules {
    return this.#rules.costs
  }

  tryAcquire(costs?: Costs): Permit | undefined {
    const cost = this.costs.cost(costs)
    if (this.#closed) throw this.#closed
    const callers = this.#callers
    if (!callers) return this.#take(cost, NOTHING, 0, 0, 0)
    const { queue } = callers
    // Waiters are not overtaken: a permit is available only in addition to all permits that they want.
    return this.#take(cost, callers.costOf(queue.permits), queue.callers, 0, 0)
  }

  decide(costs?: Costs): Decision {
    while (true) {
      const permit = this.tryAcquire(costs)
      // It comes after the waiters of all tenants.
      const explanation = this.#explain(this.costs.cost(costs), this.#callers?.queue)
      // A permit became available between the two calls, so try again.
      if (permit || explanation.waitsFor !== 'nothing') return { permit, explanation }
    }
  }

  acquire(costs?: Costs, options?: AcquireOptions): Promise<Permit> {
    try {
      const cost = this.costs.cost(costs)
      const terms = termsOf(options)
      const { wait, signal, tenant } = terms
      if (tenant && this.#turns) {
        throw new InvalidArgumentError(
          'tenant needs a limiter of one thread or of a box, not one that threads share',
        )
      }
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw this.#errors.aborted(signal)
      if (wait === 0) {
        const permit = this.tryAcquire(costs)
        if (!permit) throw this.#busy()
        return Promise.resolve(permit)
      }
      const callers = (this.#callers ??= new Callers(this.#times, this, this.#errors))
      const deadline = wait === Infinity ? Infinity : this.#deadline(cost, terms, callers)
      return this.#join(callers, cost, terms, deadline)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  explain(costs?: Costs, options?: TenantOptions): Explanation {
    const cost = this.costs.cost(costs)
    return this.#explain(cost, this.#callers?.queue.beforeLast(tenantOf(options), this.costs.share(cost)))
  }

  /** @param before the callers ahead of the one that wants an explanation. */
  #explain(cost: Cost, { callers: place, permits }: Counts = NO_CALLERS): Explanation {
    const counter = this.#counter
    const { running } = counter
    const ahead = this.#callers?.costOf(permits) ?? NOTHING
    const explanation = explanationOf(counter.explain(cost, ahead), place, this.#times.now(), counter.paused)
    const isFull = running + place >= this.#rules.concurrency
    return { ...explanation, running, waitsFor: isFull ? 'concurrency' : explanation.waitsFor }
  }

  pauseUntil(time: Date | number): void {
    this.#counter.pauseUntil(this.#times.pauseTime(time))
    this.wake()
  }

  resume(): void {
    this.#counter.resume()
    this.wake()
  }

  /** Applies changed limits. */
  limitsChanged(): void {
    this.#counter.limitsChanged?.()
    this.#callers?.refuseAbove(this.costs)
    this.wake()
  }

  /** Whether it can be dropped: it has no waiter, and no permit counts any more. */
  get blank(): boolean {
    return !this.waiting && this.#counter.blank
  }

  get waiting(): boolean {
    return this.#callers?.queue.first !== undefined
  }

  /** Serves waiters in the next microtask. */
  wake(): void {
    if (this.#handing || !this.waiting) return
    this.#late = 0
    this.#goOn()
  }

  shut(): void {
    this.#closed ??= this.#errors.closed()
  }

  /** Rejects all waiters. @param error default: that the limiter was closed. */
  refuseAll(error: Error = this.#closed!): void {
    this.#callers?.refuseAll(error)
  }

  async end(): Promise<void> {
    await this.#callers?.end()
  }

  released(): void {
    this.#counter.release?.()
    this.wake()
  }

  unused(taken: Taken): void {
    this.#counter.refund(taken)
  }

  settled(taken: Taken, change: readonly number[]): void {
    const current = this.successor?.() ?? this
    // What is above an estimate counts from now on, wherever the permit was counted.
    const excess = change.map(amount => Math.max(amount, 0))
    current.#counter.settle?.(taken, current === this ? change : excess)
    current.wake()
  }

  timeOver(): void {
    this.#late = LATENESS
    if (!this.#handing) this.#handOut()
  }

  gaveUp(isFirstNew: boolean): void {
    this.#turns?.reportWaiters(this.#callers!.queue, true)
    if (isFirstNew) this.wake()
  }

  /** @param late as in `Counter.take`. */
  #take(cost: Cost, ahead: Cost, callers: number, late: number, arrival: number): Permit | undefined {
    const at = this.#counter.take(cost, ahead, callers, late, arrival)
    return Number.isNaN(at) ? undefined : new Permit(this, cost, at, this.#counter.mark, this.#times.epoch)
  }

  /** @throws TimedOutError when the permit can't be available within the wait. */
  #deadline(cost: Cost, { wait, priority, tenant }: Terms, callers: Callers): number {
    const now = this.#times.now()
    // Others may settle less than they have estimated.
    if (cost.amounts) return now + wait
    const before = callers.queue.before(priority, tenant, cost.n)
    const ready = this.#counter.readyAt(cost, callers.costOf(before.permits), 0)
    if (ready - now <= wait) return now + wait
    throw this.#errors.tooLate(wait, ready - now, before.callers)
  }

  #busy(): BusyError {
    const { concurrency } = this.#rules
    return this.#counter.full ? this.#errors.allInUse(concurrency) : this.#errors.busy()
  }

  /** @param deadline clock time. */
  #join(callers: Callers, cost: Cost, terms: Terms, deadline: number): Promise<Permit> {
    return new Promise(settle => {
      const { queue } = callers
      const turns = this.#turns
      const waiter = new PermitWaiter(cost, this.costs.share(cost), turns?.arrive(cost.n) ?? 0, settle)
      const { tenant } = terms
      const isBeyond = this.#full(queue, tenant, 0) !== undefined
      if (isBeyond) this.#beyond.push(waiter)
      const { first } = queue
      callers.enter(waiter, terms, deadline)
      turns?.reportWaiters(queue, false)
      // With tenants, the first may be another one than before even if it is not this one.
      if (isBeyond || queue.first !== first) this.wake()
      else if (!this.#handing) queue.setTimer()
    })
  }

  /**
   * Gives the first waiter its permit, and the next one in a later microtask, after the code of the first caller has
   * run, which may take a while. So each permit counts from the beginning of its call.
   */
  #handOut(): void {
    this.#handing = false
    const callers = this.#callers!
    const turns = this.#turns
    const { queue } = callers
    if (queue.earliestDeadline < Infinity) callers.refuseLate(this.#times.now())
    const { first } = queue
    if (!first) return
    turns?.reportWaiters(queue, false)
    const permit = this.#take(first.cost, NOTHING, 0, this.#late, first.arrival)
    if (permit) {
      callers.leave(first, true)
      turns?.reportWaiters(queue, false)
      first.settle(permit)
      this.#gave = true
      if (queue.first) this.#goOn()
      else this.#reportDone()
      return
    }
    this.#reportDone()
    const now = this.#times.now()
    callers.refuseDue(now)
    if (this.#beyond.length > 0) this.#refuseBeyond(callers)
    if (queue.first) this.#lookLater(queue, queue.first, now)
  }

  /** Rejects the newest waiters beyond the maximum number, because no permit is available now. */
  #refuseBeyond(callers: Callers): void {
    const newest = this.#beyond.reverse()
    this.#beyond = []
    // Those that are too many for their tenant leave room for others.
    for (const rules of [{ ...this.#rules, queue: Infinity }, this.#rules]) {
      for (const waiter of newest) {
        const tenant = waiter.rank?.lane.tenant
        const error = waiter.isQueued && this.#full(callers.queue, tenant, 1, rules)
        if (error) callers.refuse(waiter, error)
      }
    }
  }

  /** Returns the error if too many callers wait. @param own number of those in the queue that it is about. */
  #full(
    queue: Waiters<PermitWaiter>,
    tenant: Tenant | undefined,
    own: number,
    rules = this.#rules,
  ): BusyError | undefined {
    return this.#errors.queueFull(rules, queue.callers - own, tenant, queue.callersOf(tenant) - own)
  }

  /**
   * Reports that no more permits are available. A thread that took nothing must not report, because that would only
   * wake itself.
   */
  #reportDone(): void {
    if (!this.#gave) return
    this.#gave = false
    this.#turns?.reportDone()
  }

  #goOn(): void {
    this.#handing = true
    runtimeTimers.queueMicrotask((this.#next ??= () => this.#handOut()))
  }

  /** Sets the next check to the turn of the first waiter. */
  #lookLater(queue: Waiters<PermitWaiter>, { cost, arrival }: PermitWaiter, now: number): void {
    const counter = this.#counter
    // If permits in use are the reason, a release wakes the queue.
    const readyAt = counter.full ? Infinity : counter.readyAt(cost, NOTHING, arrival)
    queue.checkAt(this.#times.readsWall ? Math.min(readyAt, now + MAX_SLEEP) : readyAt, now)
  }
}
