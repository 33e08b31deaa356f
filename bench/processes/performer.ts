/** The period in which all processes of a subject work, on the machine's monotonic clock, in milliseconds. */
export interface Window {
  readonly startAt: number
  readonly endAt: number
}

/** The results of one process in a window. */
export interface Performance {
  readonly operations: number
  /** Number of open TCP sockets of the process. */
  readonly connections?: number | undefined
  /** The operations of each box, if the shares of boxes matter and not those of processes. */
  readonly perBox?: readonly number[] | undefined
  /** Time at which the last counted operation ended; absent if it was the end of the window. */
  readonly doneAt?: number | undefined
  readonly waits: Float64Array
  /** Time at which each wait began, if order is measured. */
  readonly requested?: Float64Array | undefined
  readonly broken?: string | undefined
}

/** The part of a subject in one process, ready to work. */
export interface Performer {
  perform(window: Window): Promise<Performance>
  stop(): Promise<void>
}

/** The settings of a process of a subject. */
export interface Setting {
  /** Shared by all processes of the subject. */
  readonly folder: string
  /** Number of the process, from 0. */
  readonly process: number
  readonly processes: number
}

/** Prepares a process. */
export type Prepare = (setting: Setting) => Promise<Performer>

/** A message from the bench to a process. */
export type Order = { readonly type: 'perform'; readonly window: Window } | { readonly type: 'stop' }

/** A message from a process to the bench. */
export type Answer =
  | { readonly type: 'ready' }
  | { readonly type: 'performed'; readonly performance: Performance }
  | { readonly type: 'failed'; readonly message: string }
