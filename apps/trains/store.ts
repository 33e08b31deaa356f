import type { TransactionPart } from 'signalbox'
import type { Read, Transaction } from './messages/message-type.js'

/** The IDs of a transaction's messages, and durations in milliseconds. */
export interface TransactionOptions {
  readonly id: readonly TransactionPart[]
  readonly wait: number
  readonly lease: number
  readonly retention: number
  /** The label that `inspect` shows for the transaction's locks. Default: the label of the box. */
  readonly label?: string | undefined
}

export interface MessagesTransaction extends Transaction {
  /** Whether the message with this ID is already committed, and must be skipped. */
  committed(id: string): boolean
}

/** The outcome of a transaction: `applied` is false if all its messages were already committed. */
export type TransactionResult<Result> =
  | { readonly applied: true; readonly result: Result }
  | { readonly applied: false }

/** The part of Signalbox's `Store` that the tracker uses. */
export interface TrainStore {
  get(key: string): Promise<{ readonly value: unknown } | undefined>
  put(key: string, value: unknown): Promise<unknown>
  delete(key: string): Promise<unknown>
  /** Calls `change` with the values under the keys that `keys` returns, and commits all its writes or none. */
  transaction<Result>(
    keys: (read: Read) => Promise<readonly string[]>,
    change: (transaction: MessagesTransaction) => Promise<Result>,
    options: TransactionOptions,
  ): Promise<TransactionResult<Result>>
}

/**
 * A store without locks and version checks, which overwrites concurrent updates. It shows that the comparison with the
 * serial result detects lost updates.
 */
export function unlockedStore(store: Pick<TrainStore, 'get' | 'put' | 'delete'>): TrainStore {
  const read = async (key: string): Promise<unknown> => (await store.get(key))?.value
  return {
    get: key => store.get(key),
    put: (key, value) => store.put(key, value),
    delete: key => store.delete(key),
    async transaction(keys, change) {
      const values = new Map<string, unknown>()
      for (const key of await keys(read)) values.set(key, await read(key))
      const writes: (() => Promise<unknown>)[] = []
      const result = await change({
        get: key => values.get(key),
        put: (key, value) => writes.push(() => store.put(key, value)),
        delete: key => writes.push(() => store.delete(key)),
        committed: () => false,
      })
      for (const write of writes) await write()
      return { applied: true, result }
    },
  }
}
