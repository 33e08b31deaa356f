import type { Setting } from './setting.js'

/** The settings of a process of callers. */
export interface Order {
  readonly strategy: string
  readonly setting: Setting
  /** The numbers of the workers that live in it, from 0. */
  readonly workers: readonly number[]
  /** Of the service. */
  readonly port: number
  /** Under which the service notes the calls. */
  readonly path: string
  /** Where processes share what they count. */
  readonly engine: string
  /** Of what they count there. */
  readonly name: string
  /** By how much the way from a permit to the service may vary, in milliseconds. */
  readonly jitter: number
  /** Each thread stands still for `length` every `every`, in milliseconds. */
  readonly stall?: { readonly every: number; readonly length: number } | undefined
}

/** When a run begins and ends: on the machine's monotonic clock. All callers get it when all are connected. */
export interface Times {
  readonly startAt: number
  readonly endAt: number
}
