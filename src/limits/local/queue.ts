import type { Timer } from '../../clock.js'
import { AbortedError, InvalidArgumentError, TimedOutError, type ErrorContext } from '../../errors.js'
import { AbortWatch } from './abort-watch.js'
import { Deadlines } from './deadlines.js'
import type { Permit } from '../permit.js'
import type { Counter } from '../counter.js'
import type { Times } from './times.js'
import { Waiter, WaitingLine } from './waiting-line.js'

/** How a thread stands in line with others: with the caller that is its first, and all behind it. */
export interface Turns {
  /** A number greater than that of everybody who came before, in any thread. @param n how many permits it wants. */
  arrive(n: number): number
  /** Who waits here now. @param gaveUp whether somebody left for whom others may have waited. */
  stand(line: WaitingLine, gaveUp: boolean): void
  /** Some were given something here, and nobody can be given more for now. */
  rest(): void
}

/** What gives permits to those who wait. */
export interface Source {
  readonly counter: Counter
  readonly times: Times
  /** For messages. */
  readonly context: ErrorContext
  /** The line in which threads stand, where several share a limit. */
  readonly turns: Turns | undefined
  /** A permit for whoever comes first, if there is one now. @param late as in `Counter.take`. */
  give(waiter: Waiter, late: number): Permit | undefined
}

/** By how much a timer can be late without shifting what is evenly spaced: milliseconds. */
const LATENESS = 5
/** A shorter delay could be lost in rounding: milliseconds. */
const SHORTEST_DELAY = 0.001
/** How long the wall clock is trusted to run like the other one: milliseconds. */
const LONGEST_NAP = 60_000

type Settle = Waiter['settle']

/** Of the promise that was made last. */
let settleNewest: Settle
const keepSettle = (settle: Settle): void => void (settleNewest = settle)

/**
 * Those who wait, in one line and with one timer, however many they are. Each permit is counted at the moment at which it
 * is given, and the next caller gets its own only when the one before has gone on.
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
  /** Whether somebody was given something since the line last came to rest. */
  #gave = false
  /** Those who want to know when nobody waits any more. */
  readonly #ended: (() => void)[] = []
  readonly #next = (): void => this.#handOut()

  constructor(source: Source) {
    this.#source = source
  }

  /** How many wait. */
  get callers(): number {
    return this.#line.callers
  }

  /** How many permits they wait for. */
  get permits(): number {
    return this.#line.permits
  }

  /** Those who stand before a caller that comes now. */
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

  /** Rejects those who wait for more than can ever be given. */
  refuseAbove(most: number): void {
    for (const waiter of this.#line) {
      if (waiter.n <= most) continue
      this.#refuse(waiter, lowered(most, waiter.n, this.#context))
    }
  }

  /** Rejects all who wait. */
  refuseAll(error: Error): void {
    for (const waiter of this.#line) this.#refuse(waiter, error)
  }

  /** Resolves when nobody waits any more. */
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
   * Gives the first in line its permit, and the next one in a later microtask: after the caller has gone on, which may
   * take its time, so that each permit is counted when its call begins and not earlier.
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
    // Whose deadline is now had a last chance.
    this.#refuseLate(now => this.#deadlines!.earliest <= now)
    if (this.#line.head) this.#arm()
  }

  /** Who took nothing has nothing to tell: it would only wake itself. */
  #rest(): void {
    if (!this.#gave) return
    this.#gave = false
    this.#source.turns?.rest()
  }

  #goOn(): void {
    this.#handing = true
    queueMicrotask(this.#next)
  }

  /** Sets the one timer for what comes first: the turn of the first in line, or somebody's deadline. */
  #arm(): void {
    const { counter, times } = this.#source
    const now = times.now()
    let at = this.#deadlines?.earliest ?? Infinity
    // A release wakes the line where the permits in use are the reason.
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

/** Who waits for more than there will ever be ends with this. */
export function lowered(most: number, n: number, context: ErrorContext): InvalidArgumentError {
  return new InvalidArgumentError(`the limit was lowered to ${most} while a caller waited for ${n}`, context)
}

/** @param context with the reason of the signal as cause. */
export function aborted(context: ErrorContext & { readonly cause: unknown }): AbortedError {
  return new AbortedError('the wait for a permit was aborted', context)
}
