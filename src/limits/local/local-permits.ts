import type { BusyError, ClosedError } from '../../base/errors.js'
import type { Decision, Explanation } from '../limiter.js'
import { checkedInteger, termsOf, type AcquireOptions } from '../limit-options.js'
import { Permit, type PermitGiver } from '../permit.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { PermitQueue, type Source, type Turns } from './permit-queue.js'
import type { Counter, Rules, Taken } from '../counter.js'
import type { Times } from '../times.js'
import type { PermitWaiter } from '../permit-waiter.js'

/** Decides about the permits of one counter, and serves its waiters. */
export class LocalPermits implements PermitGiver, Source {
  readonly times: Times
  readonly counter: Counter
  readonly errors: LimiterErrors
  readonly turns: Turns | undefined
  readonly #rules: Rules
  /** Created when a caller waits for the first time. */
  #queue: PermitQueue | undefined
  #closed: ClosedError | undefined

  constructor(rules: Rules, times: Times, counter: Counter, errors: LimiterErrors, turns?: Turns) {
    this.#rules = rules
    this.times = times
    this.counter = counter
    this.errors = errors
    this.turns = turns
  }

  get maxCallers(): number {
    return this.#rules.queue
  }

  tryAcquire(n = 1): Permit | undefined {
    if (n !== 1) this.#check(n)
    if (this.#closed) throw this.#closed
    const queue = this.#queue
    // Waiters are not overtaken: a permit is available only in addition to all permits that they want.
    return queue ? this.#take(n, queue.permits, queue.callers, 0, 0) : this.#take(n, 0, 0, 0, 0)
  }

  decide(): Decision {
    while (true) {
      const permit = this.tryAcquire()
      const explanation = this.explain()
      // A permit became available between the two calls, so try again.
      if (permit || explanation.waitsFor !== 'nothing') return { permit, explanation }
    }
  }

  acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    try {
      if (n !== 1) this.#check(n)
      const terms = termsOf(options)
      const { wait, signal, priority } = terms
      if (this.#closed) throw this.#closed
      if (signal?.aborted) throw this.errors.aborted(signal)
      const queue = (this.#queue ??= new PermitQueue(this))
      if (wait === 0) {
        const permit = this.tryAcquire(n)
        if (!permit) throw this.#busy()
        return Promise.resolve(permit)
      }
      const deadline = wait === Infinity ? Infinity : this.#deadline(n, wait, queue.before(priority))
      return queue.join(n, terms, deadline)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  explain(n = 1): Explanation {
    this.#check(n)
    const { counter, times } = this
    const { callers: place, permits: ahead } = this.#queue ?? { callers: 0, permits: 0 }
    const limits = counter.reports()
    const binding = counter.binding(n, ahead)
    const { running } = counter
    const readyIn = Math.max(counter.readyAt(n, ahead, 0) - times.now(), 0)
    const waitsFor = (): Explanation['waitsFor'] => {
      if (running + place >= this.#rules.concurrency) return 'concurrency'
      if (counter.paused) return 'pause'
      return readyIn > 0 ? 'limit' : 'nothing'
    }
    return {
      waitsFor: waitsFor(),
      binding: binding === undefined ? undefined : limits[binding],
      place,
      readyIn,
      running,
      limits,
    }
  }

  pauseUntil(time: Date | number): void {
    this.counter.pauseUntil(this.times.pauseTime(time))
    this.#queue?.wake()
  }

  resume(): void {
    this.counter.resume()
    this.#queue?.wake()
  }

  /** Applies changed limits. */
  limitsChanged(): void {
    this.counter.limitsChanged?.()
    this.#queue?.refuseAbove(this.counter.maxPermits)
    this.#queue?.wake()
  }

  /** Whether it can be dropped: it has no waiter, and no permit counts any more. */
  get blank(): boolean {
    return !this.waiting && this.counter.blank
  }

  /** Whether there is a waiter. */
  get waiting(): boolean {
    return !!this.#queue?.callers
  }

  /** Serves waiters whose turn has come. */
  wake(): void {
    this.#queue?.wake()
  }

  /** Admits no further caller. */
  shut(): void {
    this.#closed ??= this.errors.closed()
  }

  /** Rejects all waiters. @param error default: that the limiter was closed. */
  refuseAll(error: Error = this.#closed!): void {
    this.#queue?.refuseAll(error)
  }

  /** Resolves when no waiter is left. */
  async end(): Promise<void> {
    await this.#queue?.end()
  }

  give({ n, arrival }: PermitWaiter, late: number): Permit | undefined {
    return this.#take(n, 0, 0, late, arrival)
  }

  released(): void {
    this.counter.release()
    this.#queue?.wake()
  }

  unused(taken: Taken): void {
    this.counter.refund(taken)
  }

  #take(n: number, ahead: number, callers: number, late: number, arrival: number): Permit | undefined {
    const { counter } = this
    const at = counter.take(n, ahead, callers, late, arrival)
    return Number.isNaN(at) ? undefined : new Permit(this, n, at, counter.mark, this.times.epoch)
  }

  /** @throws TimedOutError when the permit can't be available within the wait. */
  #deadline(n: number, wait: number, before: { readonly callers: number; readonly permits: number }): number {
    const now = this.times.now()
    const ready = this.counter.readyAt(n, before.permits, 0)
    if (ready - now <= wait) return now + wait
    throw this.errors.tooLate(wait, ready - now, before.callers)
  }

  #busy(): BusyError {
    const { concurrency } = this.#rules
    return this.counter.full ? this.errors.allInUse(concurrency) : this.errors.busy()
  }

  #check(n: number): void {
    checkedInteger('n', n, 1, this.counter.maxPermits)
  }
}
