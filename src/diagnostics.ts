import { channel } from 'node:diagnostics_channel'

/** What every message on a lock channel carries. */
export interface LockEvent {
  /** The engine's name. */
  engine: string
  /** The box's session id. */
  session: string
  keys: readonly string[]
}

/** A message on `signalbox:lock:granted`. */
export interface GrantedEvent extends LockEvent {
  token: bigint
  /** Milliseconds from the request to the grant. */
  waited: number
  /** The message of the request, the same object, for one that stood in line while somebody listened. */
  request?: LockEvent | undefined
}

/** A message on `signalbox:lock:released`. */
export interface ReleasedEvent extends LockEvent {
  token: bigint
  /** Milliseconds from the grant to its release. */
  held: number
}

/** A message on `signalbox:lock:lost`. */
export interface LostEvent extends LockEvent {
  /** The error that `assertHeld()` throws from now on. */
  error: Error
}

/** A message on `signalbox:lock:timed-out`. */
export interface TimedOutEvent extends LockEvent {
  /** Milliseconds that the caller waited. */
  waited: number
  /** The message of the request, the same object, for one that stood in line while somebody listened. */
  request?: LockEvent | undefined
}

/** The channels of `node:diagnostics_channel` on which locks tell what happens. Nothing is built without a subscriber. */
export const channels = {
  requested: channel('signalbox:lock:requested'),
  granted: channel('signalbox:lock:granted'),
  released: channel('signalbox:lock:released'),
  lost: channel('signalbox:lock:lost'),
  timedOut: channel('signalbox:lock:timed-out'),
}
