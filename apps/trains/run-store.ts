import type { Read } from './messages/message-type.js'
import type { MessagesTransaction, TrainStore, TransactionOptions, TransactionResult } from './store.js'

/** A stored value and the run that wrote it. */
interface Stamped {
  readonly run: string
  readonly value: unknown
}

/**
 * Time for which the store remembers the IDs of committed messages, in milliseconds. A message that is delivered again
 * after that time would be applied twice.
 */
export const ID_RETENTION = 24 * 3_600_000

/** Retries a task while the engine is unreachable. */
export type Retry = <Result>(task: () => Promise<Result>) => Promise<Result>

/**
 * A run's view of the store. Each run starts empty on any engine, because it ignores the values and the message IDs of
 * earlier runs.
 */
export class RunStore {
  readonly #store: TrainStore
  readonly #run: string
  readonly #retry: Retry

  /** @param run a unique name. */
  constructor(store: TrainStore, run: string, retry: Retry) {
    this.#store = store
    this.#run = run
    this.#retry = retry
  }

  async get(key: string): Promise<unknown> {
    return this.#own((await this.#retry(() => this.#store.get(key)))?.value)
  }

  async put(key: string, value: unknown): Promise<void> {
    await this.#retry(() => this.#store.put(key, this.#stamped(value)))
  }

  /** Like `TrainStore.transaction`, with retries. Skips messages that a try without a reply has already committed. */
  transaction<Result>(
    keys: (read: Read) => Promise<readonly string[]>,
    change: (transaction: MessagesTransaction) => Promise<Result>,
    { id, ...options }: Omit<TransactionOptions, 'retention'>,
  ): Promise<TransactionResult<Result>> {
    const own = {
      ...options,
      id: id.map(({ id: one, key }) => ({ id: this.#ownId(one), key })),
      retention: ID_RETENTION,
    }
    return this.#retry(() =>
      this.#store.transaction(
        read => {
          const found = new Map<string, Promise<unknown>>()
          return keys(key => {
            const value = found.get(key) ?? read(key).then(stored => this.#own(stored))
            found.set(key, value)
            return value
          })
        },
        async transaction => {
          const values = new Map<string, unknown>()
          const changed = new Set<string>()
          const write = (key: string, value: unknown): void => {
            values.set(key, value)
            changed.add(key)
          }
          const result = await change({
            get: key => {
              if (!values.has(key)) values.set(key, this.#own(transaction.get(key)))
              return values.get(key)
            },
            put: write,
            delete: key => write(key, undefined),
            committed: one => transaction.committed(this.#ownId(one)),
          })
          // Parses and writes each value once, regardless of how many messages use it.
          for (const key of changed) {
            const value = values.get(key)
            if (value === undefined) transaction.delete(key)
            else transaction.put(key, this.#stamped(value))
          }
          return result
        },
        own,
      ),
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
