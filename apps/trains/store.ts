import type { Read, Transaction } from './messages/message-type.js'

/** A part of a transaction: its id, and the key that the id is remembered with. */
export interface Part {
  readonly id: string
  readonly key: string
}

/** How a transaction is taken: see the options of the same names of the command. */
export interface TransactionOptions {
  /** Its parts; a transaction whose parts were all committed before is not run again. */
  readonly parts: readonly Part[]
  /** How long to queue for the locks of all keys: milliseconds. */
  readonly wait: number
  /** How long the locks outlive a process that has stopped: milliseconds. */
  readonly lease: number
}

/** A transaction of several parts. */
export interface PartsTransaction extends Transaction {
  /** Whether the part of this id was committed before, and has to be left out. */
  committed(id: string): boolean
  /** Leaves the part of this id out: it is not committed, and has to be tried again. */
  leaveOut(id: string): void
}

/** What became of a transaction: `applied` is false when all its parts were committed before. */
export type TransactionResult<Result> =
  { readonly applied: true; readonly result: Result } | { readonly applied: false }

/** The store of the tracker, as the parts of the tracker see it. */
export interface TrainStore {
  get(key: string): Promise<unknown>
  put(key: string, value: unknown): Promise<void>
  /** Runs `change` on the values under the keys that `keys` names, and commits all that it did, or nothing. */
  transaction<Result>(
    keys: (read: Read) => readonly string[] | Promise<readonly string[]>,
    change: (transaction: PartsTransaction) => Result | Promise<Result>,
    options: TransactionOptions,
  ): Promise<TransactionResult<Result>>
}
