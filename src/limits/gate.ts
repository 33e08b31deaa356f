import type { Clock, Timer } from '../clock.js'
import {
  AbortedError,
  BusyError,
  ClosedError,
  InvalidArgumentError,
  shown,
  TimedOutError,
} from '../errors.js'
import { AbortWatch } from './abort-watch.js'
import { Deadlines } from './deadlines.js'
import type { Limiter } from './limiter.js'
import { termsOf, whole, type AcquireOptions } from './limit-options.js'
import { Permit, type PermitGiver } from './permit.js'
import type { LimitReport, Taken, Tally } from './tally.js'
import { Waiter, WaitingLine } from './waiting-line.js'
import type { Window } from './window.js'

/** What a caller who asks now would meet. */
export interface Explanation {
  /** What it would wait for first. */
  readonly waitsFor: 'nothing' | 'limit' | 'concurrency' | 'pause'
  /** The limit that lets it wait the longest, one of `limits`; undefined when none does. */
  readonly binding: LimitReport | undefined
  /** How many callers stand before it. */
  readonly place: number
  /** Milliseconds until its turn, if nobody before it gives up. What is in use may be released sooner or later. */
  readonly readyIn: number
  /** How many permits are in use, where `concurrency` limits that. */
  readonly running: number
  readonly limits: readonly LimitReport[]
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
 * One line of callers before a tally: first come, first served, with one timer, however many wait. Each permit is counted
 * at the moment at which it is given, and the next caller gets its own only when the one before has gone on.
 */
export class Gate implements Limiter, PermitGiver {
  readonly #tally: Tally
  readonly #clock: Clock
  readonly #mostWaiters: number
  /** What messages call it. */
  readonly #key: string | undefined
  readonly #line = new WaitingLine()
  #deadlines: Deadlines | undefined
  #aborts: AbortWatch | undefined
  #timer: Timer | undefined
  /** Clock time. */
  #timerAt = Infinity
  /** Whether `#handOut` is about to run as a microtask. */
  #handing = false
  #late = 0
  #closed: ClosedError | undefined
  #drained: (() => void) | undefined
  readonly #next = (): void => this.#handOut()

  constructor(tally: Tally, clock: Clock, mostWaiters: number, key: string | undefined) {
    this.#tally = tally
    this.#clock = clock
    this.#mostWaiters = mostWaiters
    this.#key = key
  }

  tryAcquire(n = 1): Permit | undefined {
    if (n !== 1) this.#check(n)
    if (this.#closed) throw this.#closed
    // Who waits is not overtaken: a permit is free if it is free beside all that the line is waiting for.
    return this.#take(n, this.#line.permits, this.#line.callers, 0)
  }

  acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    try {
      if (n !== 1) this.#check(n)
      const { wait, signal, priority } = termsOf(options)
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw this.#aborted(signal)
      const line = this.#line
      if (wait === 0 || line.callers >= this.#mostWaiters) {
        const permit = this.tryAcquire(n)
        if (!permit) throw this.#busy(wait)
        return Promise.resolve(permit)
      }
      const deadline = wait === Infinity ? Infinity : this.#deadline(n, wait, priority)
      const promise = new Promise<Permit>(keepSettle)
      const waiter = new Waiter(n, settleNewest)
      line.add(waiter, priority)
      if (signal || deadline !== Infinity) this.#limit(waiter, signal, deadline)
      if (line.head === waiter) this.#soon()
      else if (deadline < this.#timerAt && !this.#handing) this.#arm()
      return promise
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T> {
    if (typeof task !== 'function') throw new InvalidArgumentError(`run takes a function, not ${shown(task)}`)
    const permit = await this.acquire(n, options)
    try {
      return await task(permit)
    } finally {
      permit.release()
    }
  }

  explain(n = 1): Explanation {
    this.#check(n)
    const tally = this.#tally
    const { callers, permits } = this.#line
    const limits = tally.reports()
    const binding = tally.binding(n, permits)
    const readyIn = tally.readyAt(n, permits) - tally.now()
    const running = tally.running
    return {
      waitsFor:
        running + callers >= tally.concurrency
          ? 'concurrency'
          : tally.paused
            ? 'pause'
            : readyIn > 0
              ? 'limit'
              : 'nothing',
      binding: binding === undefined ? undefined : limits[binding],
      place: callers,
      readyIn: Math.max(readyIn, 0),
      running,
      limits,
    }
  }

  pauseUntil(time: Date | number): void {
    const milliseconds = time instanceof Date ? time.getTime() : time
    if (typeof milliseconds !== 'number' || !Number.isFinite(milliseconds)) {
      throw new InvalidArgumentError(`pauseUntil takes a Date or milliseconds since 1970, not ${shown(time)}`)
    }
    this.#tally.pauseUntil(milliseconds)
    if (this.#line.head) this.#soon()
  }

  /** Puts other rules over what was counted. @param windows made of the present ones by `withLimit`. */
  change(windows: readonly Window[]): void {
    this.#tally.change(windows)
    const { most } = this.#tally
    for (const waiter of this.#line) {
      if (waiter.n <= most) continue
      this.#refuse(
        waiter,
        new InvalidArgumentError(`the limit was lowered to ${most} while a caller waited for ${waiter.n}`, {
          key: this.#key,
        }),
      )
    }
    if (this.#line.head) this.#soon()
  }

  get blank(): boolean {
    return !this.#line.head && this.#tally.blank
  }

  /** Lets nobody in any more. */
  shut(): void {
    this.#closed ??= new ClosedError('the limiter was closed', { key: this.#key })
  }

  /** Resolves when nobody waits any more. */
  drained(): Promise<void> {
    if (!this.#line.head) return Promise.resolve()
    return new Promise(resolve => {
      const before = this.#drained
      this.#drained = () => {
        before?.()
        resolve()
      }
    })
  }

  /** Rejects all who wait. */
  clear(): void {
    for (const waiter of this.#line) this.#refuse(waiter, this.#closed!)
  }

  released(): void {
    if (this.#tally.concurrency === Infinity) return
    this.#tally.release()
    if (this.#line.head) this.#soon()
  }

  unused(taken: Taken): void {
    this.#tally.refund(taken)
    if (this.#line.head) this.#soon()
  }

  #take(n: number, ahead: number, callers: number, late: number): Permit | undefined {
    const tally = this.#tally
    const at = tally.take(n, ahead, callers, late)
    return Number.isNaN(at) ? undefined : new Permit(this, n, at, tally.takenAtWall, tally.epoch)
  }

  /** @throws TimedOutError when it can't be met. */
  #deadline(n: number, wait: number, priority: number): number {
    const { callers, permits } = this.#line.before(priority)
    const now = this.#tally.now()
    const ready = this.#tally.readyAt(n, permits)
    if (ready - now <= wait) return now + wait
    const turn = `its turn would be in ${Math.ceil(ready - now)} ms at the earliest`
    throw new TimedOutError(`no permit within ${wait} ms: ${callers} callers stand before, ${turn}`, {
      key: this.#key,
    })
  }

  #limit(waiter: Waiter, signal: AbortSignal | undefined, deadline: number): void {
    waiter.patience = { signal, deadline }
    if (deadline !== Infinity) (this.#deadlines ??= new Deadlines()).add(waiter)
    if (!signal) return
    this.#aborts ??= new AbortWatch((aborting, by) => this.#refuse(aborting, this.#aborted(by)))
    this.#aborts.add(waiter, signal)
  }

  /** Lets the line go on in the next microtask. */
  #soon(): void {
    if (this.#handing) return
    this.#handing = true
    queueMicrotask(this.#next)
  }

  /**
   * Gives the first in line its permit, and the next one in a later microtask: after the caller has gone on, which may
   * take its time, so that each permit is counted when its call begins and not earlier.
   */
  #handOut(): void {
    this.#handing = false
    this.#dropLate(false)
    const waiter = this.#line.head
    if (!waiter) return
    const permit = this.#take(waiter.n, 0, 0, this.#late)
    if (permit) {
      this.#leave(waiter)
      waiter.settle(permit)
      if (this.#line.head) this.#soon()
      return
    }
    this.#late = 0
    this.#dropLate(true)
    if (this.#line.head) this.#arm()
  }

  /** Sets the one timer for what comes first: the turn of the first in line, or somebody's deadline. */
  #arm(): void {
    const tally = this.#tally
    const now = tally.now()
    let at = this.#deadlines?.earliest ?? Infinity
    // A release wakes the line where the permits in use are the reason.
    if (tally.running < tally.concurrency) at = Math.min(at, tally.readyAt(this.#line.head!.n, 0))
    if (tally.readsWall) at = Math.min(at, now + LONGEST_NAP)
    if (at === this.#timerAt) return
    this.#disarm()
    if (at === Infinity) return
    this.#timerAt = at
    this.#timer = this.#clock.after(Math.max(at - now, SHORTEST_DELAY), () => this.#timeOver(), true)
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

  /** Rejects those whose deadline has passed. @param due also those whose deadline is now: their turn did not come. */
  #dropLate(due: boolean): void {
    const deadlines = this.#deadlines
    if (!deadlines) return
    const now = this.#tally.now()
    while (deadlines.earliest < now || (due && deadlines.earliest === now)) {
      const error = new TimedOutError('no permit within the wait', { key: this.#key })
      this.#refuse(deadlines.first()!, error)
    }
  }

  #refuse(waiter: Waiter, error: Error): void {
    const first = this.#line.head === waiter
    this.#leave(waiter)
    waiter.settle(Promise.reject(error))
    if (first && this.#line.head) this.#soon()
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
    this.#drained?.()
    this.#drained = undefined
  }

  #check(n: number): void {
    whole('n', n, 1, this.#tally.most)
  }

  #busy(wait: number): BusyError {
    const { callers } = this.#line
    const why = wait === 0 ? 'there is no permit now' : `${callers} callers wait already`
    return new BusyError(why, { key: this.#key })
  }

  #aborted(signal: AbortSignal): AbortedError {
    const cause: unknown = signal.reason
    return new AbortedError('the wait for a permit was aborted', { key: this.#key, cause })
  }
}
