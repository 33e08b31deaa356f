import type { Field } from './field.js'
import type { Message } from './message.js'

/** Reads the newest value of a store key without locking it; undefined where none exists. */
export type Read = (key: string) => Promise<unknown>

/** The values under a message's keys. Touching any other key throws. */
export interface Transaction {
  /** The value, as this transaction has left it so far; undefined where none exists. It must not be changed. */
  get(key: string): unknown
  put(key: string, value: unknown): void
  delete(key: string): void
}

/** The outcome of a message: `event` and `details` go to the log, and events are counted in the report. */
export interface Outcome {
  readonly event: string
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * A kind of message: one module each, and nothing else knows it. It says how its fields are checked, which keys it
 * needs, and what it does to the values under them.
 */
export interface MessageType<M extends Message = Message> {
  readonly type: M['type']
  /** A check for every field besides `id` and `type`. Fields that are not named here are dropped. */
  readonly fields: { readonly [Name in Exclude<keyof M, 'id' | 'type'>]: Field<M[Name]> }
  /**
   * The store keys that `handle` touches, the train's key first: it stays the same whenever this message is tried,
   * so the message's id is remembered with it. Keys that depend on a value are found by reading it.
   */
  keys(message: M, read: Read): readonly string[] | Promise<readonly string[]>
  /**
   * Where it happens, as far as the message itself says: messages of neighbouring places go to the same worker, so
   * that workers seldom wait for each other's locks.
   */
  place?(message: M): string
  /** Changes the values. It may run again when another writer came between, so it does nothing else. */
  handle(message: M, transaction: Transaction): Outcome
}

/** The outcome of a message that changes nothing, and why. */
export function ignored(why: string, details: Readonly<Record<string, unknown>> = {}): Outcome {
  return { event: 'ignored', details: { why, ...details } }
}
