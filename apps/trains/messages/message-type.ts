import type { Field } from './field.js'
import type { Message } from './message.js'

/** Reads the newest value of a store key without locking it. Returns undefined if there is none. */
export type Read = (key: string) => Promise<unknown>

/** Access to the values under a message's keys. Any other key is an error. */
export interface Transaction {
  /**
   * Returns the value, including the writes of this transaction; undefined if there is none. Do not modify the value.
   */
  get(key: string): unknown
  put(key: string, value: unknown): void
  delete(key: string): void
}

/** The outcome of a message. `event` and `details` are logged, and the report counts the events. */
export interface Outcome {
  readonly event: string
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * A message type, defined in a module of its own: the checks of its fields, the keys that it uses, and how it changes
 * their values.
 */
export interface MessageType<M extends Message = Message> {
  readonly type: M['type']
  /** A check for each field besides `id` and `type`. Other fields are dropped. */
  readonly fields: { readonly [Name in Exclude<keyof M, 'id' | 'type'>]: Field<M[Name]> }
  /**
   * Returns the store keys that `handle` uses, the train's key first. The store records the message's ID with the
   * train's key, because that key is the same at each try. The others may depend on values that `read` returns.
   */
  keys(message: M, read: Read): readonly string[] | Promise<readonly string[]>
  /**
   * Returns the location that the message names. Messages of neighbouring locations go to the same worker, so that
   * workers seldom wait for each other's locks. Missing if messages of this type name no location.
   */
  place?(message: M): string
  /** Changes the values. Must have no other effects, because it may be called again after a conflict. */
  handle(message: M, transaction: Transaction): Outcome
}

/** Returns the outcome of a message that changes nothing, with the reason. */
export function ignored(why: string, details: Readonly<Record<string, unknown>> = {}): Outcome {
  return { event: 'ignored', details: { why, ...details } }
}
