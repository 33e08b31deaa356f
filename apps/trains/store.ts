import type { Read, Transaction } from './messages/message-type.js'

/** The ids of a transaction's messages, and the options of the command, in milliseconds. */
export interface TransactionOptions {
  readonly id: readonly string[]
  readonly wait: number
  readonly lease: number
}

/** As RunStore passes them on: `retention` is how long the store remembers the ids. */
export interface StoredOptions extends TransactionOptions {
  readonly retention: number
}

/** A transaction of several messages. */
export interface MessagesTransaction extends Transaction {
  /** Whether the message with this id was committed before, and must be skipped. */
  committed(id: string): boolean
}

/** The outcome of a transaction: `applied` is false when all its messages were committed before. */
export type TransactionResult<Result> =
  { readonly applied: true; readonly result: Result } | { readonly applied: false }

/** What the tracker uses of Signalbox's `Store`, which has more than that. */
export interface TrainStore {
  get(key: string): Promise<{ readonly value: unknown } | undefined>
  put(key: string, value: unknown): Promise<unknown>
  delete(key: string): Promise<unknown>
  /**
   * Calls `change` with the values under the keys that `keys` names, and commits all its writes or none. The ids are
   * recorded with the first key.
   */
  transaction<Result>(
    keys: (read: Read) => Promise<readonly string[]>,
    change: (transaction: MessagesTransaction) => Promise<Result>,
    options: StoredOptions,
  ): Promise<TransactionResult<Result>>
}
