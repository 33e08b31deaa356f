import { channel } from 'node:diagnostics_channel'

/** The fields of every message. */
export interface BoxEvent {
  /** The engine's name. */
  engine: string
  /** The session ID of the box. */
  session: string
}

/** A message on `signalbox:box:state`. */
export interface BoxStateEvent extends BoxEvent {
  status: 'ready' | 'reconnecting' | 'closed'
  /** The engine's error, or the error that ended the session; undefined for a box that is ready. */
  reason: Error | undefined
}

/** The fields of every message on a lock channel. */
export interface LockEvent extends BoxEvent {
  keys: readonly string[]
  /** The mode of each key's claim. */
  modes: readonly ('exclusive' | 'shared' | 'permits')[]
}

/** A message on `signalbox:lock:granted`. */
export interface GrantedEvent extends LockEvent {
  token: bigint
  /** Milliseconds from the request to the grant. */
  waited: number
  /** The message of the request, the same object; undefined if nothing subscribed to that. */
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
  /** The error that `release()` rejects with. */
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
  /** The error that `acquire` rejects with; a BusyError if `tryAcquire` returns undefined. */
  error: unknown
  /** The message of the request, the same object. */
  request: LockEvent
}

/** The fields of every message on a limit channel. */
export interface LimitEvent extends BoxEvent {
  /** The name of the limiter. */
  limiter: string
  /** The key of the limiter; undefined for the limiter itself. */
  key: string | undefined
}

/** A message on `signalbox:limit:permitted`. */
export interface PermittedEvent extends LimitEvent {
  /** Number of calls that the permit is for. */
  n: number
  /** Milliseconds from the request to the permit. */
  waited: number
}

/** A message on `signalbox:limit:refused`. */
export interface RefusedEvent extends LimitEvent {
  n: number
  /** Milliseconds from the request to its end. */
  waited: number
  /** The error that `acquire` rejects with; a BusyError if `tryAcquire` or `decide` returns no permit. */
  error: unknown
}

/** A message on `signalbox:limit:paused`. */
export interface PausedEvent extends LimitEvent {
  /** Milliseconds since 1970. */
  until: number
}

/** The fields of every message on a store channel. */
export interface StoreEvent extends BoxEvent {
  /** The name of the store. */
  store: string
  /** The keys, as the caller named them; empty for a transaction that ended before its keys were known. */
  keys: readonly string[]
  /** Milliseconds from the call to its end. */
  took: number
  /** The error that the call rejects with. */
  error?: unknown
}

/** A message on `signalbox:store:transaction`. */
export interface TransactionEvent extends StoreEvent {
  /** `repeated`: its `id` was committed before. `failed`: nothing was written, unless `error` is indeterminate. */
  outcome: 'applied' | 'repeated' | 'failed'
  /** Number of attempts, including the last one. */
  attempts: number
  /** The token of the locks under which it was applied. */
  token?: bigint | undefined
}

/** A message on `signalbox:store:write`. */
export interface WriteEvent extends StoreEvent {
  verb: 'put' | 'delete' | 'compareAndSet'
  /** `conflict`: another version was found, and nothing was written. */
  outcome: 'applied' | 'conflict' | 'failed'
}

/**
 * The channels of `node:diagnostics_channel` on which locks, stores and the limiters of boxes publish events. Messages
 * are created only for subscribers.
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
