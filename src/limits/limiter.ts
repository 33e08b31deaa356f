import type { Costs } from './costs.js'
import type { AcquireOptions, TenantOptions } from './limit-options.js'
import type { Permit } from './permit.js'
import type { Explained } from '../engine/limits/reservation.js'
import type { LimitReport } from '../engine/limits/window.js'

/** The state of a limiter for a caller that requests permits now. */
export interface Explanation {
  /** The first condition that the caller would wait for. */
  readonly waitsFor: 'nothing' | 'limit' | 'concurrency' | 'pause'
  /** The limit in `limits` that delays the caller the longest; undefined if none does. */
  readonly binding: LimitReport | undefined
  /** Number of callers ahead of it. With tenants, an estimate if some callers want several permits each. */
  readonly place: number
  /** Milliseconds until its turn, if no waiter ahead gives up. Permits in use may be released sooner or later. */
  readonly readyIn: number
  /** Number of permits in use, if `concurrency` limits it; of a box's limiter, those of this box. */
  readonly running: number
  readonly limits: readonly LimitReport[]
}

/** Returns the explanation for a caller without a `concurrency`. @param place number of callers ahead. */
export function explanationOf(
  { ready, binding, reports }: Explained,
  place: number,
  now: number,
  isPaused: boolean,
): Explanation {
  return {
    waitsFor: isPaused ? 'pause' : ready > now ? 'limit' : 'nothing',
    binding: binding === undefined ? undefined : reports[binding],
    place,
    readyIn: Math.max(ready - now, 0),
    running: 0,
    limits: reports,
  }
}

/** The outcome of `decide`, and the state of the limiter at the same moment. */
export interface Decision {
  /** The permit; undefined if none is available now. */
  readonly permit: Permit | undefined
  /** The state for the next caller. After a refusal, `waitsFor` is never `'nothing'`. */
  readonly explanation: Explanation
}

/** The methods of every limiter that decides within the call. */
export interface Limiter {
  /**
   * Returns a permit if it is available now without overtaking a waiter, else undefined. Never waits.
   * @param cost number of calls, no greater than the smallest limit; default 1. If limits count other units, an amount
   * of each, such as `{ tokens: 1200 }`.
   * @throws InvalidArgumentError, ClosedError
   */
  tryAcquire(cost?: Costs): Permit | undefined
  /**
   * Does the same as `tryAcquire`. Also returns the number of remaining permits, and the time until more
   * are available. A separate call of `explain` would return the state of a later moment.
   * @throws ClosedError
   */
  decide(cost?: Costs): Decision
  /**
   * Waits for its turn, and returns a permit. Callers are served by priority, then in call order; if they
   * have tenants, the tenants take turns.
   * @throws TimedOutError when `wait` has passed, or at once if the permit can't be available by then (BusyError for a
   * wait of 0); BusyError when too many callers wait; AbortedError, InvalidArgumentError, ClosedError
   */
  acquire(cost?: Costs, options?: AcquireOptions): Promise<Permit>
  /**
   * Acquires a permit, calls `task`, releases the permit, and returns the task's result.
   * @throws the errors of `acquire`, with `taskBegan` false; the error of the task
   */
  run<T>(task: (permit: Permit) => T | Promise<T>, cost?: Costs, options?: AcquireOptions): Promise<T>
  /**
   * Returns the state of the limiter for a caller that would request permits now, on behalf of this tenant.
   * @throws InvalidArgumentError
   */
  explain(cost?: Costs, tenant?: TenantOptions): Explanation
  /**
   * Grants no permit before this time, for example a time that a service has sent. Callers keep waiting. Of several
   * times, the latest applies.
   * @param time a Date, or milliseconds since 1970; at most 366 days ahead.
   * @throws InvalidArgumentError
   */
  pauseUntil(time: Date | number): void
  /** Ends a pause: callers get permits again, as the limits allow. */
  resume(): void
}
