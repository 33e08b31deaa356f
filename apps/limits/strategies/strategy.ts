import type { Clock } from 'signalbox/limits'
import type { Bell } from '../bell.js'
import type { Mode } from '../setting.js'

/** A method to limit the calls per second to a service. */
export interface Strategy {
  readonly name: string
  /** The modes that the strategy supports. */
  readonly modes: readonly Mode[]
  /** Whether the strategy uses only the given clock, so that it can be simulated. */
  readonly simulated: boolean
  /**
   * The seconds that the strategy extends by the guard, so that arrivals also keep the limit. Absent if it has no
   * guard.
   */
  readonly guarded?: 'any second' | 'seconds of the clock'
  /** Whether the strategy counts in a Redis server. */
  readonly onRedis?: boolean
  /** Creates the parts that all threads share. Passed through `workerData`. */
  prepare(limit: number, mode: Mode, jitter: number): unknown
  /** Returns the throttle of one thread. */
  join(shared: unknown, world: World): Throttle
}

/** The environment of a strategy in one thread. */
export interface World {
  /** Calls per second. */
  readonly limit: number
  /** The URL of an engine that processes share, or of the Redis server. */
  readonly engine: string
  /** Name of the limit in the engine. It is unique to this run. */
  readonly name: string
  /** Assumed variation of the time from a permit to the arrival of its call, in milliseconds. */
  readonly jitter: number
  readonly clock: Clock
  /** The same clock if it is virtual; otherwise undefined. */
  readonly virtual: Clock | undefined
  /** Returns milliseconds since 1970. */
  readonly wall: () => number
  /** The clock for scheduled jobs. Only one thread has it. */
  readonly keeper: Clock | undefined
  readonly bell: Bell
}

/** Delays the callers of one thread. */
export interface Throttle {
  /** Resolves when the caller may call. */
  pass(): Promise<void>
}
