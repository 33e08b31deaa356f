/** Where the callers live. */
export type Mode = 'tasks' | 'threads' | 'processes'

/** What all strategies are given alike. */
export interface Setting {
  readonly workers: number
  /** Calls a second. */
  readonly limit: number
  readonly seconds: number
  readonly mode: Mode
}

/** What a second is: milliseconds. */
export const SECOND = 1000

/** The first worker begins at once; all others begin so much later, in the middle of a window: milliseconds. */
export const RAMP = 300

/** How long the service takes to answer: milliseconds. */
export const SERVICE_TIME = 100

/** By how much the way from a permit to the service may vary: where nothing else is said; our limiters add it to the second: milliseconds. */
export const JITTER: Readonly<Record<Mode, number>> = { tasks: 50, threads: 100, processes: 100 }
