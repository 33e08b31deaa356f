import { channel } from 'node:diagnostics_channel'

/** What every message carries. */
export interface BoxEvent {
  /** The engine's name. */
  engine: string
  /** The box's session id. */
  session: string
}

/** A message on `signalbox:box:state`. */
export interface BoxStateEvent extends BoxEvent {
  status: 'ready' | 'reconnecting' | 'closed'
  /** What the engine failed with, or what ended the session; undefined for a box that is ready. */
  reason: Error | undefined
}

/** What every message on a lock channel carries. */
export interface LockEvent extends BoxEvent {
  keys: readonly string[]
  /** How each of the keys is claimed. */
  modes: readonly ('exclusive' | 'shared' | 'permits')[]
}

/** A message on `signalbox:lock:granted`. */
export interface GrantedEvent extends LockEvent {
  token: bigint
  /** Milliseconds from the request to the grant. */
  waited: number
  /** The message of the request, the same object; absent when it had no listener then. */
  request?: LockEvent | undefined
}

/** A message on `signalbox:lock:released`. */
export interface ReleasedEvent extends LockEvent {
  token: bigint
  /** Milliseconds from the grant to its end. */
  held: number
}

/** A message on `signalbox:lock:release-failed`. */
export interface ReleaseFailedEvent extends ReleasedEvent {
  /** What `release()` is rejected with. */
  error: unknown
}

/** A message on `signalbox:lock:lost`. */
export interface LostEvent extends ReleasedEvent {
  /** The error that `assertHeld()` throws from now on. */
  error: Error
}

/** A message on `signalbox:lock:refused`. */
export interface LockRefusedEvent extends LockEvent {
  /** Milliseconds from the request to its end. */
  waited: number
  /** Why, by its `code`: what `acquire` is rejected with; a BusyError where `tryAcquire` gives nothing. */
  error: unknown
  /** The message of the request, the same object. */
  request: LockEvent
}

/** What every message on a limit channel carries. */
export interface LimitEvent extends BoxEvent {
  /** The limiter's name. */
  limiter: string
  /** Absent for the limiter as a whole. */
  key: string | undefined
}

/** A message on `signalbox:limit:permitted`. */
export interface PermittedEvent extends LimitEvent {
  /** For how many calls the permit stands. */
  n: number
  /** Milliseconds from the request to the permit. */
  waited: number
}

/** A message on `signalbox:limit:refused`. */
export interface RefusedEvent extends LimitEvent {
  n: number
  /** Milliseconds from the request to its end. */
  waited: number
  /** What `acquire` was rejected with; a BusyError where `tryAcquire` or `decide` gave nothing. */
  error: unknown
}

/** A message on `signalbox:limit:paused`. */
export interface PausedEvent extends LimitEvent {
  /** Milliseconds since 1970. */
  until: number
}

/** What every message on a store channel carries. */
export interface StoreEvent extends BoxEvent {
  /** The store's name. */
  store: string
  /** As the caller named them; none for a transaction that ended before its keys were found. */
  keys: readonly string[]
  /** Milliseconds from the call to its end. */
  took: number
  /** What the call was rejected with. */
  error?: unknown
}

/** A message on `signalbox:store:transaction`. */
export interface TransactionEvent extends StoreEvent {
  /**
   * `repeated`: its `id` was committed before; `failed`: nothing was written, or `error` says that this is not known.
   */
  outcome: 'applied' | 'repeated' | 'failed'
  /** How many it took, or had taken when it failed. */
  attempts: number
  /** Of the locks under which it was applied. */
  token?: bigint | undefined
}

/** A message on `signalbox:store:write`. */
export interface WriteEvent extends StoreEvent {
  verb: 'put' | 'delete' | 'compareAndSet'
  /** `conflict`: another version was found, and nothing was written. */
  outcome: 'applied' | 'conflict' | 'failed'
}

/**
 * The channels of `node:diagnostics_channel` on which locks, limiters of boxes, and stores publish events. No
 * message is built without a subscriber.
 */
export const channels = {
  boxState: channel('signalbox:box:state'),
  requested: channel('signalbox:lock:requested'),
  granted: channel('signalbox:lock:granted'),
  released: channel('signalbox:lock:released'),
  releaseFailed: channel('signalbox:lock:release-failed'),
  lost: channel('signalbox:lock:lost'),
  lockRefused: channel('signalbox:lock:refused'),
  permitted: channel('signalbox:limit:permitted'),
  refused: channel('signalbox:limit:refused'),
  paused: channel('signalbox:limit:paused'),
  transaction: channel('signalbox:store:transaction'),
  write: channel('signalbox:store:write'),
}
