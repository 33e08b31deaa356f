import type { AcquireOptions } from './limit-options.js'
import type { Permit } from './permit.js'
import type { LimitReport } from '../engine/limits/window.js'

/** What a caller that asks now would meet. */
export interface Explanation {
  /** What it would wait for first. */
  readonly waitsFor: 'nothing' | 'limit' | 'concurrency' | 'pause'
  /** The limit that lets it wait the longest, one of `limits`; undefined when none does. */
  readonly binding: LimitReport | undefined
  /** How many callers stand before it. */
  readonly place: number
  /** Milliseconds until its turn, if no waiter before it gives up. Permits in use may be released sooner or later. */
  readonly readyIn: number
  /** How many permits are in use, where `concurrency` limits that; of a box's limiter, those of this box. */
  readonly running: number
  readonly limits: readonly LimitReport[]
}

/** Whether a caller may continue now, and what that leaves: both of the same moment. */
export interface Decision {
  /** For one call; undefined when there is none now. */
  readonly permit: Permit | undefined
  /** What the next caller would meet. After a refusal that is never `'nothing'`. */
  readonly explanation: Explanation
}

/** What every limiter can do that decides within the call. */
export interface Limiter {
  /**
   * A permit for `n` calls if it can be had now without overtaking a waiter, else undefined; never waits.
   * @param n a whole number, no greater than the least limit; default 1.
   * @throws InvalidArgumentError, ClosedError
   */
  tryAcquire(n?: number): Permit | undefined
  /**
   * As `tryAcquire` for one call. It also returns what is left and when more comes back. What `explain` returns after a
   * `tryAcquire` may be of a later moment.
   * @throws ClosedError
   */
  decide(): Decision
  /**
   * A permit for `n` calls as soon as it is this caller's turn: by priority, then first come, first served.
   * @throws TimedOutError when `wait` is over, or at once when it can't be met (BusyError for a wait of 0), BusyError
   * when too many callers wait, AbortedError, InvalidArgumentError, ClosedError
   */
  acquire(n?: number, options?: AcquireOptions): Promise<Permit>
  /**
   * Acquires, calls `task`, releases, and returns what the task returned.
   * @throws what `acquire` throws, with a `taskBegan` of false; what the task throws
   */
  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T>
  /**
   * What a caller that asked for `n` permits now would meet.
   * @throws InvalidArgumentError
   */
  explain(n?: number): Explanation
  /**
   * Gives no permit before this time, such as one that a service has named. Waiters keep waiting. Of several times the
   * latest counts.
   * @param time a Date, or milliseconds since 1970; no more than 366 days ahead.
   * @throws InvalidArgumentError
   */
  pauseUntil(time: Date | number): void
  /** Ends a pause: waiters get permits again as the limits allow. */
  resume(): void
}
