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

/** How long after the first worker the others begin, in milliseconds: in the middle of a window. */
export const RAMP = 300

/** How long the service takes to answer, in milliseconds. */
export const SERVICE_TIME = 100
