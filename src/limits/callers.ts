import type { Clock } from '../clock.js'
import type { ErrorContext } from '../errors.js'
import { Waiters, type WaitersOwner } from '../waiters.js'
import type { PermitWaiter } from './local/permit-waiter.js'
import { aborted, late, lowered } from './refusals.js'

/** Serves the callers of a queue. */
export interface CallersOwner<T> {
  /** As in `WaitersOwner`. */
  timeOver(now: number): void
  /** Called after a waiter was rejected. @param wasFirst whether it was the first in the queue. */
  gaveUp(waiter: PermitWaiter<T>, wasFirst: boolean): void
}

/** The callers that wait in one queue, and how each wait ends. */
export class Callers<T> implements WaitersOwner<PermitWaiter<T>> {
  readonly queue: Waiters<PermitWaiter<T>>
  readonly #owner: CallersOwner<T>
  /** The context of errors. */
  readonly #context: ErrorContext
  /** Called when the last waiter has left. */
  readonly #ended: (() => void)[] = []

  constructor(clock: Clock, owner: CallersOwner<T>, context: ErrorContext) {
    this.queue = new Waiters(clock, this)
    this.#owner = owner
    this.#context = context
  }

  /**
   * Adds a waiter to the queue. As for `Waiters.limit`, the caller then sets a timer.
   * @param deadline clock time; Infinity for none.
   */
  enter(waiter: PermitWaiter<T>, priority: number, signal: AbortSignal | undefined, deadline: number): void {
    this.queue.add(waiter, priority)
    this.queue.limit(waiter, deadline, signal)
  }

  /** Removes a waiter, which gets its permits, or waits elsewhere. */
  leave(waiter: PermitWaiter<T>): void {
    this.queue.remove(waiter)
    if (this.queue.first) return
    for (const notify of this.#ended.splice(0)) notify()
  }

  refuse(waiter: PermitWaiter<T>, error: Error): void {
    const wasFirst = this.queue.first === waiter
    this.leave(waiter)
    waiter.reject(error)
    this.#owner.gaveUp(waiter, wasFirst)
  }

  /** Rejects the waiters that want more permits than can ever be granted together. */
  refuseAbove(max: number): void {
    for (const waiter of this.queue) {
      if (waiter.n > max) this.refuse(waiter, lowered(max, waiter.n, this.#context))
    }
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    for (const waiter of this.queue) this.refuse(waiter, error)
  }

  /** Rejects the waiters whose deadline was before this time. @param outage as in `late`. */
  refuseLate(now: number, outage?: Error): void {
    while (this.queue.earliestDeadline < now) this.#refuseMostUrgent(outage)
  }

  /** Also rejects waiters whose deadline is now, after their last chance. @param outage as in `late`. */
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
    this.refuse(waiter, aborted(signal, this.#context))
  }

  #refuseMostUrgent(outage: Error | undefined): void {
    this.refuse(this.queue.mostUrgent!, late(this.#context, outage))
  }
}
