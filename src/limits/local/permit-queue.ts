import { AbortedError, InvalidArgumentError, TimedOutError, type ErrorContext } from '../../errors.js'
import { Waiters, type WaitersOwner } from '../../waiters.js'
import type { Counter } from '../counter.js'
import type { Permit } from '../permit.js'
import { PermitWaiter } from './permit-waiter.js'
import type { Times } from './times.js'

/** How a thread stands in the queue of threads: with its first waiter, and all behind it. */
export interface Turns {
  /** A number greater than that of every caller that came before, in any thread. @param n how many permits it wants. */
  arrive(n: number): number
  /**
   * Tells which callers wait in this thread. @param gaveUp whether a waiter left that others may have waited behind.
   */
  stand(waiters: Waiters<PermitWaiter>, gaveUp: boolean): void
  /** Tells that waiters of this thread were given permits, and that no more can be given for now. */
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

/** By how much a timer can be late without shifting what is evenly spaced: milliseconds. */
const LATENESS = 5
/** How long the wall clock is trusted to run like the other one: milliseconds. */
const LONGEST_NAP = 60_000

/**
 * Hands out permits to waiters. Each permit is counted at the moment at which it is given. The next waiter gets its
 * permit only when the caller before has gone on.
 */
export class PermitQueue implements WaitersOwner<PermitWaiter> {
  readonly #source: Source
  readonly #waiters: Waiters<PermitWaiter>
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #late = 0
  /** Whether a waiter was given a permit since the queue last came to rest. */
  #gave = false
  /** The callers of `end`. */
  readonly #ended: (() => void)[] = []
  readonly #next = (): void => this.#handOut()

  constructor(source: Source) {
    this.#source = source
    this.#waiters = new Waiters(source.times, this)
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
      waiters.add(waiter, priority)
      turns?.stand(waiters, false)
      waiters.limit(waiter, deadline, signal)
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
  refuseAbove(most: number): void {
    for (const waiter of this.#waiters) {
      if (waiter.n <= most) continue
      this.#refuse(waiter, lowered(most, waiter.n, this.#context))
    }
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    for (const waiter of this.#waiters) this.#refuse(waiter, error)
  }

  /** Resolves when no waiter is left. */
  end(): Promise<void> {
    return new Promise(resolve => {
      if (this.#waiters.first) this.#ended.push(resolve)
      else resolve()
    })
  }

  timeOver(): void {
    this.#late = LATENESS
    if (!this.#handing) this.#handOut()
  }

  aborted(waiter: PermitWaiter, { reason: cause }: AbortSignal): void {
    this.#refuse(waiter, aborted({ ...this.#context, cause }))
  }

  get #context(): ErrorContext {
    return this.#source.context
  }

  /**
   * Gives the first waiter its permit, and the next one in a later microtask: after the first caller has gone on, which
   * may take a while. So each permit is counted when its call begins and not earlier.
   */
  #handOut(): void {
    this.#handing = false
    const waiters = this.#waiters
    const { turns, times } = this.#source
    if (waiters.earliestDeadline < Infinity) {
      const now = times.now()
      while (waiters.earliestDeadline < now) this.#refuseLate()
    }
    const waiter = waiters.first
    if (!waiter) return
    turns?.stand(waiters, false)
    const permit = this.#source.give(waiter, this.#late)
    if (permit) {
      this.#leave(waiter)
      turns?.stand(waiters, false)
      waiter.settle(permit)
      this.#gave = true
      if (waiters.first) this.#goOn()
      else this.#rest()
      return
    }
    this.#rest()
    const now = times.now()
    // Waiters whose deadline is now have had a last chance.
    while (waiters.earliestDeadline <= now) this.#refuseLate()
    if (waiters.first) this.#lookLater(waiters.first, now)
  }

  /** A thread that took nothing has nothing to tell: it would only wake itself. */
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
    this.#waiters.lookAt(times.readsWall ? Math.min(readyAt, now + LONGEST_NAP) : readyAt, now)
  }

  #refuseLate(): void {
    this.#refuse(this.#waiters.mostUrgent!, new TimedOutError('no permit within the wait', this.#context))
  }

  #refuse(waiter: PermitWaiter, error: Error): void {
    const first = this.#waiters.first === waiter
    this.#leave(waiter)
    waiter.reject(error)
    this.#source.turns?.stand(this.#waiters, true)
    if (first) this.wake()
  }

  #leave(waiter: PermitWaiter): void {
    this.#waiters.remove(waiter)
    if (this.#waiters.first) return
    for (const tell of this.#ended.splice(0)) tell()
  }
}

/** The error of a waiter that wants more permits than there will ever be. */
export function lowered(most: number, n: number, context: ErrorContext): InvalidArgumentError {
  return new InvalidArgumentError(`the limit was lowered to ${most} while a caller waited for ${n}`, context)
}

/** @param context with the reason of the signal as cause. */
export function aborted(context: ErrorContext & { readonly cause: unknown }): AbortedError {
  return new AbortedError('the wait for a permit was aborted', context)
}
