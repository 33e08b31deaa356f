/** Where the callers run. */
export type Mode = 'tasks' | 'threads' | 'processes'

/** The settings that are the same for all strategies. */
export interface Setting {
  readonly workers: number
  /** Calls per second. */
  readonly limit: number
  readonly seconds: number
  readonly mode: Mode
}

export const SECOND = 1000

/** Time from the start of the first worker to that of the others, in milliseconds: within a window. */
export const RAMP = 300

/** Response time of the service, in milliseconds. */
export const SERVICE_TIME = 100
