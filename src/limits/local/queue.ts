import type { Timer } from '../../clock.js'
import { AbortedError, InvalidArgumentError, TimedOutError, type ErrorContext } from '../../errors.js'
import { AbortWatch } from './abort-watch.js'
import { Deadlines } from './deadlines.js'
import type { Permit } from '../permit.js'
import type { Counter } from '../counter.js'
import type { Times } from './times.js'
import { Waiter, WaitingLine } from './waiting-line.js'

/** How a thread stands in the queue of threads: with its first waiter, and all behind it. */
export interface Turns {
  /** A number greater than that of every caller that came before, in any thread. @param n how many permits it wants. */
  arrive(n: number): number
  /**
   * Tells which callers wait in this thread. @param gaveUp whether a waiter left that others may have waited behind.
   */
  stand(line: WaitingLine, gaveUp: boolean): void
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
  give(waiter: Waiter, late: number): Permit | undefined
}

/** By how much a timer can be late without shifting what is evenly spaced: milliseconds. */
const LATENESS = 5
/** A shorter delay could be lost in rounding: milliseconds. */
const SHORTEST_DELAY = 0.001
/** How long the wall clock is trusted to run like the other one: milliseconds. */
const LONGEST_NAP = 60_000

type Settle = Waiter['settle']

/** The settle function of the newest promise. */
let settleNewest: Settle
const keepSettle = (settle: Settle): void => void (settleNewest = settle)

/**
 * The waiters, in one queue with one timer. Each permit is counted at the moment at which it is given. The next waiter
 * gets its permit only when the caller before has gone on.
 */
export class Queue {
  readonly #source: Source
  readonly #line = new WaitingLine()
  #deadlines: Deadlines | undefined
  #aborts: AbortWatch | undefined
  #timer: Timer | undefined
  /** Clock time. */
  #timerAt = Infinity
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
  }

  /** How many callers wait. */
  get callers(): number {
    return this.#line.callers
  }

  /** How many permits they wait for. */
  get permits(): number {
    return this.#line.permits
  }

  /** The waiters before a caller that comes now. */
  before(priority: number): { readonly callers: number; readonly permits: number } {
    return this.#line.before(priority)
  }

  /** @param deadline clock time. */
  join(n: number, priority: number, signal: AbortSignal | undefined, deadline: number): Promise<Permit> {
    const promise = new Promise<Permit>(keepSettle)
    const waiter = new Waiter(n, this.#source.turns?.arrive(n) ?? 0, settleNewest)
    this.#line.add(waiter, priority)
    this.#source.turns?.stand(this.#line, false)
    if (signal || deadline !== Infinity) this.#limit(waiter, signal, deadline)
    if (this.#line.head === waiter) this.wake()
    else if (deadline < this.#timerAt && !this.#handing) this.#arm()
    return promise
  }

  /** Looks in the next microtask whether there are permits. */
  wake(): void {
    if (this.#handing || !this.#line.head) return
    this.#late = 0
    this.#goOn()
  }

  /** Rejects the waiters that want more permits than can ever be given. */
  refuseAbove(most: number): void {
    for (const waiter of this.#line) {
      if (waiter.n <= most) continue
      this.#refuse(waiter, lowered(most, waiter.n, this.#context))
    }
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    for (const waiter of this.#line) this.#refuse(waiter, error)
  }

  /** Resolves when no waiter is left. */
  end(): Promise<void> {
    return new Promise(resolve => {
      if (this.#line.head) this.#ended.push(resolve)
      else resolve()
    })
  }

  get #context(): ErrorContext {
    return this.#source.context
  }

  #limit(waiter: Waiter, signal: AbortSignal | undefined, deadline: number): void {
    waiter.patience = { signal, deadline }
    if (deadline !== Infinity) (this.#deadlines ??= new Deadlines()).add(waiter)
    if (!signal) return
    this.#aborts ??= new AbortWatch(this.#source.times.clock, (aborting, { reason: cause }) =>
      this.#refuse(aborting, aborted({ ...this.#context, cause })),
    )
    this.#aborts.add(waiter, signal)
  }

  /**
   * Gives the first waiter its permit, and the next one in a later microtask: after the first caller has gone on, which
   * may take a while. So each permit is counted when its call begins and not earlier.
   */
  #handOut(): void {
    this.#handing = false
    this.#refuseLate(now => this.#deadlines!.earliest < now)
    const waiter = this.#line.head
    if (!waiter) return
    const { turns } = this.#source
    turns?.stand(this.#line, false)
    const permit = this.#source.give(waiter, this.#late)
    if (permit) {
      this.#leave(waiter)
      turns?.stand(this.#line, false)
      waiter.settle(permit)
      this.#gave = true
      if (this.#line.head) this.#goOn()
      else this.#rest()
      return
    }
    this.#rest()
    // Waiters whose deadline is now have had a last chance.
    this.#refuseLate(now => this.#deadlines!.earliest <= now)
    if (this.#line.head) this.#arm()
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

  /** Sets the one timer for what comes first: the turn of the first waiter, or a deadline. */
  #arm(): void {
    const { counter, times } = this.#source
    const now = times.now()
    let at = this.#deadlines?.earliest ?? Infinity
    // A release wakes the queue where the permits in use are the reason.
    const { n, arrival } = this.#line.head!
    if (!counter.full) at = Math.min(at, counter.readyAt(n, 0, arrival))
    if (times.readsWall) at = Math.min(at, now + LONGEST_NAP)
    if (at === this.#timerAt) return
    this.#disarm()
    if (at === Infinity) return
    this.#timerAt = at
    this.#timer = times.clock.after(Math.max(at - now, SHORTEST_DELAY), () => this.#timeOver(), true)
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = Infinity
  }

  #timeOver(): void {
    this.#disarm()
    this.#late = LATENESS
    if (!this.#handing) this.#handOut()
  }

  #refuseLate(isLate: (now: number) => boolean): void {
    if (!this.#deadlines) return
    const now = this.#source.times.now()
    while (isLate(now)) {
      this.#refuse(this.#deadlines.first()!, new TimedOutError('no permit within the wait', this.#context))
    }
  }

  #refuse(waiter: Waiter, error: Error): void {
    const first = this.#line.head === waiter
    this.#leave(waiter)
    waiter.settle(Promise.reject(error))
    this.#source.turns?.stand(this.#line, true)
    if (first) this.wake()
  }

  #leave(waiter: Waiter): void {
    this.#line.remove(waiter)
    const { patience } = waiter
    if (patience) {
      if (patience.deadline !== Infinity) this.#deadlines!.left()
      if (patience.signal) this.#aborts!.remove(waiter, patience.signal)
    }
    if (this.#line.head) return
    this.#disarm()
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
