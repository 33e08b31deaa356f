import type { Read } from './messages/message-type.js'
import type { PartsTransaction, TrainStore, TransactionOptions, TransactionResult } from './store.js'

/** A stored value and the run that wrote it. */
interface Stamped {
  readonly run: string
  readonly value: unknown
}

/**
 * The part of a store that one run of the tracker sees. Every run starts from nothing on any engine, without having to
 * know what earlier runs have left there: their values count as absent, and their message ids as other ids.
 */
export class RunStore implements TrainStore {
  readonly #store: TrainStore
  readonly #run: string

  /** @param run a name that no other run has. */
  constructor(store: TrainStore, run: string) {
    this.#store = store
    this.#run = run
  }

  async get(key: string): Promise<unknown> {
    return this.#own(await this.#store.get(key))
  }

  put(key: string, value: unknown): Promise<void> {
    return this.#store.put(key, this.#stamped(value))
  }

  transaction<Result>(
    keys: (read: Read) => readonly string[] | Promise<readonly string[]>,
    change: (transaction: PartsTransaction) => Result | Promise<Result>,
    options: TransactionOptions,
  ): Promise<TransactionResult<Result>> {
    return this.#store.transaction(
      read => keys(async key => this.#own(await read(key))),
      transaction =>
        change({
          get: key => this.#own(transaction.get(key)),
          put: (key, value) => transaction.put(key, this.#stamped(value)),
          delete: key => transaction.delete(key),
          committed: id => transaction.committed(this.#ownId(id)),
          leaveOut: id => transaction.leaveOut(this.#ownId(id)),
        }),
      { ...options, parts: options.parts.map(({ id, key }) => ({ id: this.#ownId(id), key })) },
    )
  }

  #ownId(id: string): string {
    return `${this.#run}/${id}`
  }

  #own(stored: unknown): unknown {
    const stamped = stored as Stamped | undefined
    return stamped?.run === this.#run ? stamped.value : undefined
  }

  #stamped(value: unknown): Stamped {
    return { run: this.#run, value }
  }
}
