import type { Waiters } from '../../base/waiters.js'
import { Callers, type CallersOwner } from '../callers.js'
import type { Counter } from '../counter.js'
import type { Terms } from '../limit-options.js'
import type { LimiterErrors } from '../limiter-errors.js'
import type { Permit } from '../permit.js'
import { PermitWaiter } from '../permit-waiter.js'
import type { Times } from '../times.js'
import { runtimeTimers } from '../../base/runtime-timers.js'

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

/** Takes permits for the waiters of a queue. */
export interface Source {
  readonly counter: Counter
  readonly times: Times
  readonly errors: LimiterErrors
  /** Maximum number of waiters. */
  readonly maxCallers: number
  /** The queue of threads, if several share a limit. */
  readonly turns: Turns | undefined
  /** Returns a permit for the first waiter, if one is available now. @param late as in `Counter.take`. */
  give(waiter: PermitWaiter, late: number): Permit | undefined
}

/** Maximum delay of a timer that even spacing makes up for, in milliseconds. */
const LATENESS = 5
/** Maximum time for which the wall clock is assumed to advance like the monotonic one, in milliseconds. */
const MAX_SLEEP = 60_000

/**
 * Gives permits to waiters. Each permit counts from the moment at which its caller gets it. The next waiter gets its
 * permit only after the code of that caller has run.
 */
export class PermitQueue implements CallersOwner<Permit> {
  readonly #source: Source
  readonly #callers: Callers<Permit>
  readonly #waiters: Waiters<PermitWaiter>
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #late = 0
  /** The newest waiters beyond the maximum number. They stay if others get their permits now. */
  #beyond: PermitWaiter[] = []
  /** Whether a waiter got a permit since the queue was last idle. */
  #gave = false
  readonly #next = (): void => this.#handOut()

  constructor(source: Source) {
    this.#source = source
    this.#callers = new Callers(source.times, this, source.errors)
    this.#waiters = this.#callers.queue
  }

  /** Number of waiters. */
  get callers(): number {
    return this.#waiters.callers
  }

  /** Number of permits that the waiters want. */
  get permits(): number {
    return this.#waiters.permits
  }

  /** The number of waiters ahead of a new caller, and of the permits that they want. */
  before(priority: number): { readonly callers: number; readonly permits: number } {
    return this.#waiters.before(priority)
  }

  /** @param deadline clock time. */
  join(n: number, terms: Terms, deadline: number): Promise<Permit> {
    return new Promise(settle => {
      const waiters = this.#waiters
      const { turns, maxCallers } = this.#source
      const waiter = new PermitWaiter(n, turns?.arrive(n) ?? 0, settle)
      const isBeyond = waiters.callers >= maxCallers
      if (isBeyond) this.#beyond.push(waiter)
      this.#callers.enter(waiter, terms, deadline)
      turns?.reportWaiters(waiters, false)
      if (isBeyond || waiters.first === waiter) this.wake()
      else if (!this.#handing) waiters.setTimer()
    })
  }

  /** Serves waiters in the next microtask. */
  wake(): void {
    if (this.#handing || !this.#waiters.first) return
    this.#late = 0
    this.#goOn()
  }

  /** Rejects the waiters that want more permits than can ever be granted together. */
  refuseAbove(max: number): void {
    this.#callers.refuseAbove(max)
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    this.#callers.refuseAll(error)
  }

  /** Resolves when no waiter is left. */
  end(): Promise<void> {
    return this.#callers.end()
  }

  timeOver(): void {
    this.#late = LATENESS
    if (!this.#handing) this.#handOut()
  }

  gaveUp(_waiter: PermitWaiter, wasFirst: boolean): void {
    this.#source.turns?.reportWaiters(this.#waiters, true)
    if (wasFirst) this.wake()
  }

  /**
   * Gives the first waiter its permit, and the next one in a later microtask, after the code of the first caller has
   * run, which may take a while. So each permit counts from the beginning of its call.
   */
  #handOut(): void {
    this.#handing = false
    const waiters = this.#waiters
    const { turns, times } = this.#source
    if (waiters.earliestDeadline < Infinity) this.#callers.refuseLate(times.now())
    const waiter = waiters.first
    if (!waiter) return
    turns?.reportWaiters(waiters, false)
    const permit = this.#source.give(waiter, this.#late)
    if (permit) {
      this.#callers.leave(waiter)
      turns?.reportWaiters(waiters, false)
      waiter.settle(permit)
      this.#gave = true
      if (waiters.first) this.#goOn()
      else this.#reportDone()
      return
    }
    this.#reportDone()
    const now = times.now()
    this.#callers.refuseDue(now)
    if (this.#beyond.length > 0) this.#refuseBeyond()
    if (waiters.first) this.#lookLater(waiters.first, now)
  }

  /** Rejects the newest waiters beyond the maximum number, because no permit is available now. */
  #refuseBeyond(): void {
    const newest = this.#beyond.filter(({ isQueued }) => isQueued)
    this.#beyond = []
    const { maxCallers, errors } = this.#source
    const excess = this.#waiters.callers - maxCallers
    if (excess <= 0) return
    for (const waiter of newest.slice(-excess)) this.#callers.refuse(waiter, errors.queueFull(maxCallers))
  }

  /**
   * Reports that no more permits are available. A thread that took nothing must not report, because that would only
   * wake itself.
   */
  #reportDone(): void {
    if (!this.#gave) return
    this.#gave = false
    this.#source.turns?.reportDone()
  }

  #goOn(): void {
    this.#handing = true
    runtimeTimers.queueMicrotask(this.#next)
  }

  /** Sets the next check to the turn of the first waiter. */
  #lookLater({ n, arrival }: PermitWaiter, now: number): void {
    const { counter, times } = this.#source
    // If permits in use are the reason, a release wakes the queue.
    const readyAt = counter.full ? Infinity : counter.readyAt(n, 0, arrival)
    this.#waiters.checkAt(times.readsWall ? Math.min(readyAt, now + MAX_SLEEP) : readyAt, now)
  }
}
