import type { Clock } from '../base/clock.js'
import { Waiter } from '../base/lane.js'
import { Waiters, type WaitersOwner } from '../base/waiters.js'
import type { Terms } from './limit-options.js'
import { type Cost, NOTHING } from '../engine/limits/cost.js'
import type { CostRules } from './costs.js'
import type { LimiterErrors } from './limiter-errors.js'
import type { Permit } from './permit.js'

/** A caller that waits for permits. */
export class PermitWaiter<T = Permit> extends Waiter {
  /**
   * @param share the part of its turn that its cost takes.
   * @param settle resolves the caller's promise. To save memory, it is the only one of the promise's functions that is
   * kept: a rejection is passed to it as a rejected promise.
   */
  constructor(
    readonly cost: Cost,
    share: number,
    /** Its place in the order of the callers of all threads; 0 with one thread. */
    readonly arrival: number,
    readonly settle: (outcome: T | Promise<T>) => void,
  ) {
    super(share)
  }

  reject(error: Error): void {
    this.settle(Promise.reject(error))
  }
}

/** Serves the callers of a queue. */
export interface CallersOwner {
  /** As in `WaitersOwner`. */
  timeOver(now: number): void
  /** Called after a waiter was rejected. @param isFirstNew whether another one is the first in the queue now. */
  gaveUp(isFirstNew: boolean): void
}

/** The callers that wait in one queue. Ends each wait. */
export class Callers<T = Permit> implements WaitersOwner<PermitWaiter<T>> {
  readonly queue: Waiters<PermitWaiter<T>>
  readonly #owner: CallersOwner
  readonly #errors: LimiterErrors
  /** The sum of the costs of the waiters; undefined before one has come with other units than calls. */
  #sum: { n: number; amounts: number[] } | undefined
  /** Called when the last waiter has left. */
  readonly #ended: (() => void)[] = []

  constructor(clock: Clock, owner: CallersOwner, errors: LimiterErrors) {
    this.queue = new Waiters(clock, this)
    this.#owner = owner
    this.#errors = errors
  }

  /**
   * Adds a waiter to the queue. As for `Waiters.limit`, the caller then sets a timer.
   * @param deadline the end of the wait: clock time.
   */
  enter(waiter: PermitWaiter<T>, { wait, signal, priority, tenant }: Terms, deadline: number): void {
    this.queue.add(waiter, priority, tenant)
    this.#count(waiter.cost, 1)
    this.queue.limit(waiter, wait, deadline, signal)
  }

  /** Removes a waiter, which waits elsewhere, or no more. @param isServed whether it gets its permits. */
  leave(waiter: PermitWaiter<T>, isServed = false): void {
    this.#count(waiter.cost, -1)
    if (isServed) this.queue.take(waiter)
    else this.queue.remove(waiter)
    if (this.queue.first) return
    for (const notify of this.#ended.splice(0)) notify()
  }

  refuse(waiter: PermitWaiter<T>, error: Error): void {
    const { first } = this.queue
    this.leave(waiter)
    waiter.reject(error)
    this.#owner.gaveUp(this.queue.first !== first)
  }

  /** Rejects the waiters that want more permits than can ever be granted together. */
  refuseAbove(costs: CostRules): void {
    for (const waiter of [...this.queue]) {
      const excess = costs.excess(waiter.cost)
      if (excess) this.refuse(waiter, this.#errors.lowered(excess))
    }
  }

  /**
   * Returns the cost of the first waiters; with other units than calls, an estimate by their part in the sum.
   * @param permits their share.
   */
  costOf(permits: number): Cost {
    if (permits === 0) return NOTHING
    if (!this.#sum) return { n: permits }
    const part = permits / this.queue.permits
    return { n: this.#sum.n * part, amounts: this.#sum.amounts.map(amount => amount * part) }
  }

  refuseAll(error: Error): void {
    for (const waiter of [...this.queue]) this.refuse(waiter, error)
  }

  /** Rejects the waiters whose deadline was before this time. @param outage the error if the engine is unreachable. */
  refuseLate(now: number, outage?: Error): void {
    while (this.queue.earliestDeadline < now) this.#refuseMostUrgent(outage)
  }

  /** Also rejects waiters whose deadline is now, after their last chance. @param outage as in `refuseLate`. */
  refuseDue(now: number, outage?: Error): void {
    while (this.queue.earliestDeadline <= now) this.#refuseMostUrgent(outage)
  }

  /** Resolves when no waiter is left. */
  end(): Promise<void> {
    return new Promise(resolve => {
      if (this.queue.first) this.#ended.push(resolve)
      else resolve()
    })
  }

  timeOver(now: number): void {
    this.#owner.timeOver(now)
  }

  aborted(waiter: PermitWaiter<T>, signal: AbortSignal): void {
    this.refuse(waiter, this.#errors.aborted(signal))
  }

  #count({ n, amounts }: Cost, sign: 1 | -1): void {
    if (!amounts) return
    const sum = (this.#sum ??= { n: 0, amounts: amounts.map(() => 0) })
    sum.n += sign * n
    for (const [place, amount] of amounts.entries()) sum.amounts[place]! += sign * amount
  }

  #refuseMostUrgent(outage: Error | undefined): void {
    const waiter = this.queue.mostUrgent!
    const { wait } = waiter.waitLimit!
    this.refuse(waiter, outage ? this.#errors.unreachable(wait, outage) : this.#errors.timedOut(wait))
  }
}
