import type { Field } from './field.js'
import type { Message } from './message.js'

/** Reads the newest value of a store key without locking it; undefined where none exists. */
export type Read = (key: string) => Promise<unknown>

/** The values under a message's keys. Any other key is an error. */
export interface Transaction {
  /**
   * Returns the value, with the writes of this transaction; undefined if there is none. The value must not be changed.
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
   * Returns the store keys that `handle` uses, the train's key first. The message's ID is recorded with the first key,
   * because it is the same at each try; the others may depend on values that are read.
   */
  keys(message: M, read: Read): readonly string[] | Promise<readonly string[]>
  /**
   * Returns where the message happens, if it says so. Messages of neighbouring places go to the same worker, so that
   * workers seldom wait for each other's locks.
   */
  place?(message: M): string
  /** Changes the values. It may be called again after a conflict, so it must have no other effects. */
  handle(message: M, transaction: Transaction): Outcome
}

/** Returns the outcome of a message that changes nothing, with the reason. */
export function ignored(why: string, details: Readonly<Record<string, unknown>> = {}): Outcome {
  return { event: 'ignored', details: { why, ...details } }
}
