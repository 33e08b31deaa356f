import type { Cost } from '../engine/limits/cost.js'
import type { Explained } from '../engine/limits/reservation.js'
import type { Window } from '../engine/limits/window.js'
import type { CostRules } from './costs.js'

/** The limits of a limiter and of all its keys. */
export interface Rules {
  /** All of them apply together. */
  windows: readonly Window[]
  /** For each of them, the place of its unit in a cost. */
  readonly places: readonly number[]
  costs: CostRules
  /** Maximum number of permits in use. */
  readonly concurrency: number
  /** Maximum number of waiting callers, and of those of a tenant. */
  readonly queue: number
  readonly tenantQueue: number
}

/** Permits that were taken in one step. */
export interface Taken {
  readonly cost: Cost
  /** Clock time. */
  readonly at: number
  /** Identifies them in the counter, together with the time. */
  readonly mark: number
  /** Number of times that clocks had been set back before. */
  readonly epoch: number
}

/** Counts permits, and decides whether some are available. Sets no timer. */
export interface Counter {
  /** Number of permits in use; 0 unless `concurrency` limits it. */
  readonly running: number
  /** Whether only a release can admit another caller. */
  readonly full: boolean
  readonly paused: boolean
  /** The `mark` of the permits that were taken last. */
  readonly mark: number
  /** Whether it can be dropped: its state equals that of an unused one. */
  readonly blank: boolean
  /**
   * Takes permits now, if each limit allows them in addition to those of the waiters ahead.
   * @param ahead the permits that the waiters ahead want.
   * @param callers number of waiters ahead.
   * @param late maximum time by which a late timer may have delayed this call, in milliseconds. Even spacing makes up
   * for it.
   * @param arrival the caller's number among all threads; 0 with one thread, and for a new caller.
   * @returns the clock time, or NaN when it takes none.
   */
  take(cost: Cost, ahead: Cost, callers: number, late: number, arrival: number): number
  /** Ends the use of the permits of one `take`; undefined if the number of permits in use is not limited. */
  release?(): void
  /** Takes back permits that were not used. */
  refund(taken: Taken): void
  /**
   * Counts by how much the used amounts of units exceed those that were taken. Undefined if it counts only calls.
   * @param change negative for less.
   */
  settle?(taken: Taken, change: readonly number[]): void
  /** Grants nothing before this clock time, or the latest of several such times. */
  pauseUntil(time: number): void
  /** Called when the limits have changed; undefined if they can't change. */
  limitsChanged?(): void
  /** Ends a pause. */
  resume(): void
  /**
   * Returns the earliest clock time at which permits are available after those ahead, by the limits alone: a
   * permit in use may be released at any time. If other threads wait, the time at which to check again.
   * @param arrival as in `take`.
   */
  readyAt(cost: Cost, ahead: Cost, arrival: number): number
  /** Returns the state of the limits for permits after those ahead. */
  explain(cost: Cost, ahead: Cost): Explained
}
