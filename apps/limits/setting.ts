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

/** What a second is, in milliseconds. */
export const SECOND = 1000

/** The first worker begins at once; all others begin so much later, in the middle of a window, in milliseconds. */
export const RAMP = 300

/** How long the service takes to answer, in milliseconds. */
export const SERVICE_TIME = 100
