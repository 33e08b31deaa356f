import type { LimitReport, Window } from '../engine/limits/window.js'

/** What holds for a limiter and all its keys. */
export interface Rules {
  /** All of them hold together. */
  windows: readonly Window[]
  /** How many permits may be in use together. */
  readonly concurrency: number
  /** How many callers may wait. */
  readonly queue: number
}

/** The permits that were taken in one step. */
export interface Taken {
  readonly n: number
  /** Clock time. */
  readonly at: number
  /** What else the counter needs to find them. */
  readonly mark: number
  /** How often clocks had been set back by then. */
  readonly epoch: number
}

/** Counts permits and decides whether there are any; it sets no timer. */
export interface Counter {
  /** The most permits that can be given together. */
  readonly maxPermits: number
  /** How many permits are in use; 0 unless `concurrency` limits that. */
  readonly running: number
  /** Whether only a release can admit another caller. */
  readonly full: boolean
  readonly paused: boolean
  /** Of the last take: what `refund` needs to find it. */
  readonly mark: number
  /** Whether it can be forgotten: its state is as if it had never been used. */
  readonly blank: boolean
  /**
   * Takes `n` permits now, if each limit allows them in addition to those of the waiters before.
   * @param ahead how many permits the waiters before want.
   * @param callers how many these are.
   * @param late by how much a timer may have delayed this, in milliseconds.
   * @param arrival when the caller came, if it stands in a queue with other threads; else 0.
   * @returns the clock time, or NaN when it takes none.
   */
  take(n: number, ahead: number, callers: number, late: number, arrival: number): number
  /** Ends the use of what was taken with one `take`. */
  release(): void
  /** Takes back permits that were not used. */
  refund(taken: Taken): void
  /** Gives nothing before this time of the wall clock. The latest of several counts. */
  pauseUntil(wall: number): void
  /** Notes that the limits have changed; undefined where they can't change. */
  limitsChanged?(): void
  /** Ends a pause. */
  resume(): void
  /**
   * The earliest clock time at which `n` permits can be had after `ahead` others, as far as time decides it: a permit
   * in use may be released at any time. Where other threads wait, it is the time at which another look is worth while.
   * @param arrival as in `take`.
   */
  readyAt(n: number, ahead: number, arrival: number): number
  /** Which limit lets `n` permits wait the longest: an index into `reports()`; undefined when none does. */
  binding(n: number, ahead: number): number | undefined
  reports(): LimitReport[]
}
