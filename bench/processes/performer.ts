/** When all processes of a subject work: times of the machine's monotonic clock. */
export interface Window {
  readonly startAt: number
  readonly endAt: number
}

/** What one process did in a window. */
export interface Performance {
  readonly operations: number
  /** Number of open TCP sockets of the process. */
  readonly connections?: number | undefined
  /** The operations of each box, where shares between boxes count instead of those between processes. */
  readonly perBox?: readonly number[] | undefined
  /** When the last operation that counts was done, if not at the end of the window. */
  readonly doneAt?: number | undefined
  readonly waits: Float64Array
  /** When each of the waits began, where order is measured. */
  readonly requested?: Float64Array | undefined
  readonly broken?: string | undefined
}

/** A subject's part in one process, ready to work. */
export interface Performer {
  perform(window: Window): Promise<Performance>
  stop(): Promise<void>
}

/** The settings of a process of a subject. */
export interface Setting {
  /** Shared by all processes of the subject. */
  readonly folder: string
  /** From 0. */
  readonly process: number
  readonly processes: number
}

/** Makes a process ready. */
export type Prepare = (setting: Setting) => Promise<Performer>

/** From the bench to a process. */
export type Order = { readonly type: 'perform'; readonly window: Window } | { readonly type: 'stop' }

/** From a process to the bench. */
export type Answer =
  | { readonly type: 'ready' }
  | { readonly type: 'performed'; readonly performance: Performance }
  | { readonly type: 'failed'; readonly message: string }
