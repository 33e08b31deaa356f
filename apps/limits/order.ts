import type { Setting } from './setting.js'

/** The settings of a process of callers. */
export interface Order {
  readonly strategy: string
  readonly setting: Setting
  /** The numbers of the workers in this process, from 0. */
  readonly workers: readonly number[]
  /** Port of the service. */
  readonly port: number
  /** Path under which the service records the calls. */
  readonly path: string
  /** URL of the engine in which processes share their counts. */
  readonly engine: string
  /** Name of the limit in that engine. */
  readonly name: string
  /** Assumed variation of the time from a permit to the arrival of its call, in milliseconds. */
  readonly jitter: number
  /** Each thread blocks for `length` every `every`, in milliseconds. */
  readonly stall?: { readonly every: number; readonly length: number } | undefined
}

/** Start and end of a run, on the machine's monotonic clock. Callers receive them when all callers are connected. */
export interface Times {
  readonly startAt: number
  readonly endAt: number
}
