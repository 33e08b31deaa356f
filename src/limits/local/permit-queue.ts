import type { ErrorContext } from '../../errors.js'
import type { Waiters } from '../../waiters.js'
import { Callers, type CallersOwner } from '../callers.js'
import type { Counter } from '../counter.js'
import type { Permit } from '../permit.js'
import { PermitWaiter } from './permit-waiter.js'
import type { Times } from './times.js'

/** How a thread stands in the queue of threads: with its first waiter, and all behind it. */
export interface Turns {
  /** A number greater than that of every caller that came before, in any thread. @param n how many permits it wants. */
  arrive(n: number): number
  /**
   * Reports which callers wait in this thread. @param gaveUp whether a waiter left that others may have waited behind.
   */
  stand(waiters: Waiters<PermitWaiter>, gaveUp: boolean): void
  /** Reports that waiters of this thread got permits, and that no more can be given for now. */
  rest(): void
}

/** Gives permits to the waiters of a queue. */
export interface Source {
  readonly counter: Counter
  readonly times: Times
  /** For messages. */
  readonly context: ErrorContext
  /** The queue of threads, where several share a limit. */
  readonly turns: Turns | undefined
  /** A permit for the first waiter, if there is one now. @param late as in `Counter.take`. */
  give(waiter: PermitWaiter, late: number): Permit | undefined
}

/** By how much a timer can be late without shifting what is evenly spaced, in milliseconds. */
const LATENESS = 5
/** How long the wall clock is trusted to run like the other one, in milliseconds. */
const MAX_SLEEP = 60_000

/**
 * Hands out permits to waiters. Each permit is counted at the moment at which it is given. The next waiter gets its
 * permit only when the caller before has gone on.
 */
export class PermitQueue implements CallersOwner<Permit> {
  readonly #source: Source
  readonly #callers: Callers<Permit>
  readonly #waiters: Waiters<PermitWaiter>
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #late = 0
  /** Whether a waiter was given a permit since the queue last came to rest. */
  #gave = false
  readonly #next = (): void => this.#handOut()

  constructor(source: Source) {
    this.#source = source
    this.#callers = new Callers(source.times, this, source.context)
    this.#waiters = this.#callers.queue
  }

  /** How many callers wait. */
  get callers(): number {
    return this.#waiters.callers
  }

  /** How many permits they wait for. */
  get permits(): number {
    return this.#waiters.permits
  }

  /** The waiters before a caller that comes now. */
  before(priority: number): { readonly callers: number; readonly permits: number } {
    return this.#waiters.before(priority)
  }

  /** @param deadline clock time. */
  join(n: number, priority: number, signal: AbortSignal | undefined, deadline: number): Promise<Permit> {
    return new Promise(settle => {
      const waiters = this.#waiters
      const { turns } = this.#source
      const waiter = new PermitWaiter(n, turns?.arrive(n) ?? 0, settle)
      this.#callers.enter(waiter, priority, signal, deadline)
      turns?.stand(waiters, false)
      if (waiters.first === waiter) this.wake()
      else if (!this.#handing) waiters.setTimer()
    })
  }

  /** Looks in the next microtask whether there are permits. */
  wake(): void {
    if (this.#handing || !this.#waiters.first) return
    this.#late = 0
    this.#goOn()
  }

  /** Rejects the waiters that want more permits than can ever be given. */
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
    this.#source.turns?.stand(this.#waiters, true)
    if (wasFirst) this.wake()
  }

  /**
   * Gives the first waiter its permit, and the next one in a later microtask: after the first caller has gone on, which
   * may take a while. So each permit is counted when its call begins and not earlier.
   */
  #handOut(): void {
    this.#handing = false
    const waiters = this.#waiters
    const { turns, times } = this.#source
    if (waiters.earliestDeadline < Infinity) this.#callers.refuseLate(times.now())
    const waiter = waiters.first
    if (!waiter) return
    turns?.stand(waiters, false)
    const permit = this.#source.give(waiter, this.#late)
    if (permit) {
      this.#callers.leave(waiter)
      turns?.stand(waiters, false)
      waiter.settle(permit)
      this.#gave = true
      if (waiters.first) this.#goOn()
      else this.#rest()
      return
    }
    this.#rest()
    const now = times.now()
    this.#callers.refuseDue(now)
    if (waiters.first) this.#lookLater(waiters.first, now)
  }

  /** A thread that took nothing has nothing to report: it would only wake itself. */
  #rest(): void {
    if (!this.#gave) return
    this.#gave = false
    this.#source.turns?.rest()
  }

  #goOn(): void {
    this.#handing = true
    queueMicrotask(this.#next)
  }

  /** Looks again when it is the first waiter's turn. */
  #lookLater({ n, arrival }: PermitWaiter, now: number): void {
    const { counter, times } = this.#source
    // A release wakes the queue where the permits in use are the reason.
    const readyAt = counter.full ? Infinity : counter.readyAt(n, 0, arrival)
    this.#waiters.checkAt(times.readsWall ? Math.min(readyAt, now + MAX_SLEEP) : readyAt, now)
  }
}
