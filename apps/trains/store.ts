import type { Read, Transaction } from './messages/message-type.js'

/** How a transaction is taken: see the options of the same names of the command. */
export interface TransactionOptions {
  /** A transaction of an id that was committed before is not run again. */
  readonly id: string
  /** How long to queue for the locks of all keys: milliseconds. */
  readonly wait: number
  /** How long the locks outlive a process that has stopped: milliseconds. */
  readonly lease: number
}

/** What became of a transaction: `applied` is false when its id was committed before. */
export type TransactionResult<Result> =
  { readonly applied: true; readonly result: Result } | { readonly applied: false }

/** The store of the tracker, as the parts of the tracker see it. */
export interface TrainStore {
  get(key: string): Promise<unknown>
  put(key: string, value: unknown): Promise<void>
  /** Runs `change` on the values under the keys that `keys` names, and commits all that it did, or nothing. */
  transaction<Result>(
    keys: (read: Read) => readonly string[] | Promise<readonly string[]>,
    change: (transaction: Transaction) => Result,
    options: TransactionOptions,
  ): Promise<TransactionResult<Result>>
}
