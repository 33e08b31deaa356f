import type { Read } from './messages/message-type.js'
import type { PartsTransaction, TrainStore, TransactionOptions, TransactionResult } from './store.js'

/** Single keys that can be read and written, without any check. */
export interface PlainStore {
  get(key: string): Promise<unknown>
  put(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
}

/**
 * What the tracker would be without locks and version checks: it reads, changes and writes back, and
 * overwrites what was written in between. It shows that the comparison with the serial result notices such a thing.
 */
export class UnlockedStore implements TrainStore {
  readonly #store: PlainStore

  constructor(store: PlainStore) {
    this.#store = store
  }

  get(key: string): Promise<unknown> {
    return this.#store.get(key)
  }

  put(key: string, value: unknown): Promise<void> {
    return this.#store.put(key, value)
  }

  async transaction<Result>(
    keys: (read: Read) => readonly string[] | Promise<readonly string[]>,
    change: (transaction: PartsTransaction) => Result | Promise<Result>,
    _options: TransactionOptions,
  ): Promise<TransactionResult<Result>> {
    const values = new Map<string, unknown>()
    for (const key of await keys(key => this.#store.get(key))) values.set(key, await this.#store.get(key))
    const changed = new Set<string>()
    const result = await change({
      get: key => values.get(key),
      put(key, value) {
        values.set(key, value)
        changed.add(key)
      },
      delete(key) {
        values.delete(key)
        changed.add(key)
      },
      committed: () => false,
      leaveOut: () => undefined,
    })
    for (const key of changed) {
      const value = values.get(key)
      await (value === undefined ? this.#store.delete(key) : this.#store.put(key, value))
    }
    return { applied: true, result }
  }
}
