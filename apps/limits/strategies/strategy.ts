import type { Clock } from 'signalbox/limits'
import type { Bell } from '../bell.js'
import type { Mode } from '../setting.js'

/** A way to limit the calls that a service gets each second. */
export interface Strategy {
  readonly name: string
  /** Where its callers can live. */
  readonly modes: readonly Mode[]
  /** Whether it lives by the clock that it is given, so that it can be simulated. */
  readonly simulated: boolean
  /**
   * Which seconds it makes longer by the guard, so that it keeps the limit where calls arrive; absent where it has
   * none.
   */
  readonly guarded?: 'any second' | 'seconds of the clock'
  /** Whether it counts in a Redis server. */
  readonly onRedis?: boolean
  /** What all threads share; it goes through `workerData`. */
  prepare(limit: number, mode: Mode, jitter: number): unknown
  /** The part of one thread. */
  join(shared: unknown, world: World): Throttle
}

/** What a strategy finds around it. */
export interface World {
  /** Calls a second. */
  readonly limit: number
  /** The URL of an engine that processes share, or of the Redis server. */
  readonly engine: string
  /** Of what is counted there: no other run has the same. */
  readonly name: string
  /** By how much the way from a permit to the service may vary, in milliseconds. */
  readonly jitter: number
  readonly clock: Clock
  /** The same if it is virtual; else undefined. */
  readonly virtual: Clock | undefined
  /** Milliseconds since 1970. */
  readonly wall: () => number
  /** For what is done on a schedule: one thread has it. */
  readonly keeper: Clock | undefined
  readonly bell: Bell
}

/** What each caller passes before a call. */
export interface Throttle {
  /** Resolves when the caller may call. */
  pass(): Promise<void>
}
