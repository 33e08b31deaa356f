import type { LimitReport, Window } from './rules/window.js'

/** What holds for a limiter and all its keys. */
export interface Rules {
  /** All of them hold together. */
  windows: readonly Window[]
  /** How many permits may be in use together. */
  readonly concurrency: number
  /** How many callers may wait. */
  readonly queue: number
}

/** What was taken in one step. */
export interface Taken {
  readonly n: number
  /** Clock time. */
  readonly at: number
  /** What else whoever counts needs to find it. */
  readonly mark: number
  /** How often clocks had been set back by then. */
  readonly epoch: number
}

/** What counts permits and decides whether there are any; it sets no timer. */
export interface Counter {
  /** The most permits that can be given together. */
  readonly most: number
  /** How many permits are in use; 0 unless `concurrency` limits that. */
  readonly running: number
  /** Whether only a release can let somebody else in. */
  readonly full: boolean
  readonly paused: boolean
  /** Of the last take: what `refund` needs to find it. */
  readonly mark: number
  /** Whether it could be forgotten: all that it knows is as if it had never been. */
  readonly blank: boolean
  /**
   * Takes `n` permits now, if each limit allows them beside those that stand before.
   * @param ahead how many permits others wait for who come first.
   * @param callers how many these are.
   * @param late by how much a timer may have delayed this: milliseconds.
   * @param arrival when the caller came, if it stands in line with other threads; else 0.
   * @returns the clock time, or NaN when it takes none.
   */
  take(n: number, ahead: number, callers: number, late: number, arrival: number): number
  /** Ends the use of what was taken with one `take`. */
  release(): void
  /** Takes back permits that were not used. */
  refund(taken: Taken): void
  /** Gives nothing before this time of the wall clock. The latest of several counts. */
  pauseUntil(wall: number): void
  /**
   * The earliest clock time at which `n` permits can be had after `ahead` others, as far as time decides it: a permit in
   * use may be released at any time. With other threads in line, when looking again is worth while.
   * @param arrival as in `take`.
   */
  readyAt(n: number, ahead: number, arrival: number): number
  /** Which limit lets `n` permits wait the longest: an index into `reports()`; undefined when none does. */
  binding(n: number, ahead: number): number | undefined
  reports(): LimitReport[]
}
