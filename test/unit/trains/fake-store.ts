import type { Read, Transaction } from '../../../apps/trains/messages/message-type.js'
import type {
  PartsTransaction,
  TrainStore,
  TransactionOptions,
  TransactionResult,
} from '../../../apps/trains/store.js'

/** What all processes share: values, and the ids that were committed with a key. */
export class SharedState {
  readonly values = new Map<string, string>()
  readonly ids = new Set<string>()
  /** Committed transactions, by id, in order. */
  readonly commits: string[] = []
}

/** A transaction over the named keys alone; nothing is written before `commit`. */
export class FakeTransaction implements Transaction {
  readonly #state: SharedState
  readonly #keys: readonly string[]
  readonly #writes = new Map<string, string | undefined>()

  constructor(state: SharedState, keys: readonly string[]) {
    this.#state = state
    this.#keys = keys
  }

  get(key: string): unknown {
    this.#check(key)
    const text = this.#writes.has(key) ? this.#writes.get(key) : this.#state.values.get(key)
    return text === undefined ? undefined : JSON.parse(text)
  }

  put(key: string, value: unknown): void {
    this.#check(key)
    this.#writes.set(key, JSON.stringify(value))
  }

  delete(key: string): void {
    this.#check(key)
    this.#writes.set(key, undefined)
  }

  commit(): void {
    for (const [key, text] of this.#writes) {
      if (text === undefined) this.#state.values.delete(key)
      else this.#state.values.set(key, text)
    }
  }

  #check(key: string): void {
    if (!this.#keys.includes(key)) throw new Error(`${key} is not a key of the transaction`)
  }
}

/**
 * A store for tests without an engine: each transaction takes some turns of the event loop and then happens at once.
 */
export class FakeStore implements TrainStore {
  /** A killed process commits nothing and sends nothing any more. */
  killed = false
  readonly #state: SharedState
  readonly #turns: () => number

  constructor(state: SharedState, turns: () => number = () => 1) {
    this.#state = state
    this.#turns = turns
  }

  async get(key: string): Promise<unknown> {
    const text = this.#state.values.get(key)
    return text === undefined ? undefined : JSON.parse(text)
  }

  async put(key: string, value: unknown): Promise<void> {
    this.#state.values.set(key, JSON.stringify(value))
  }

  async transaction<Result>(
    keys: (read: Read) => readonly string[] | Promise<readonly string[]>,
    change: (transaction: PartsTransaction) => Result | Promise<Result>,
    { parts }: TransactionOptions,
  ): Promise<TransactionResult<Result>> {
    const named = await keys(key => this.get(key))
    for (let turn = this.#turns(); turn > 0; turn--) await new Promise(setImmediate)
    if (this.killed) return new Promise(() => undefined)
    const recorded = new Map(parts.map(({ id, key }) => [id, `${key} ${id}`]))
    const committed = (id: string) => this.#state.ids.has(recorded.get(id)!)
    if (parts.every(({ id }) => committed(id))) return { applied: false }
    const transaction = new FakeTransaction(this.#state, named)
    const leftOut = new Set<string>()
    const result = await change({
      get: key => transaction.get(key),
      put: (key, value) => transaction.put(key, value),
      delete: key => transaction.delete(key),
      committed,
      leaveOut: id => void leftOut.add(id),
    })
    transaction.commit()
    for (const { id } of parts.filter(part => !committed(part.id) && !leftOut.has(part.id))) {
      this.#state.ids.add(recorded.get(id)!)
      this.#state.commits.push(id)
    }
    return { applied: true, result }
  }
}
