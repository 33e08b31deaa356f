import { UnavailableError, type TransactionPart } from 'signalbox'
import { systemClock } from '../../../apps/trains/clock.js'
import { Log } from '../../../apps/trains/log/log.js'
import type { Read, Transaction } from '../../../apps/trains/messages/message-type.js'
import { Outages } from '../../../apps/trains/outages.js'
import { RunStore } from '../../../apps/trains/run-store.js'
import type {
  MessagesTransaction,
  TrainStore,
  TransactionOptions,
  TransactionResult,
} from '../../../apps/trains/store.js'

/** The state that all processes share: values, and the IDs that were committed with a key. */
export class SharedState {
  readonly values = new Map<string, string>()
  readonly ids = new Set<string>()
  /** Committed transactions by ID, in order. */
  readonly commits: string[] = []
  /** Whether every call fails, as with a server that is down. */
  isDown = false
}

/** A transaction over the named keys only. Nothing is written before `commit`. */
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
 * A store for tests without an engine. Each transaction takes some turns of the event loop, and then is applied at
 * once.
 */
export class FakeStore implements TrainStore {
  /** Whether its process was killed. A killed process no longer commits or sends anything. */
  killed = false
  readonly #state: SharedState
  readonly #turns: () => number

  constructor(state: SharedState, turns: () => number = () => 1) {
    this.#state = state
    this.#turns = turns
  }

  async get(key: string): Promise<{ readonly value: unknown } | undefined> {
    const text = this.#state.values.get(key)
    return text === undefined ? undefined : { value: JSON.parse(text) }
  }

  async put(key: string, value: unknown): Promise<void> {
    this.#state.values.set(key, JSON.stringify(value))
  }

  async delete(key: string): Promise<void> {
    this.#state.values.delete(key)
  }

  async transaction<Result>(
    keys: (read: Read) => Promise<readonly string[]>,
    change: (transaction: MessagesTransaction) => Promise<Result>,
    { id: parts }: TransactionOptions,
  ): Promise<TransactionResult<Result>> {
    if (this.#state.isDown) throw new UnavailableError('the server is down')
    const named = await keys(async key => (await this.get(key))?.value)
    for (let turn = this.#turns(); turn > 0; turn--) await new Promise(setImmediate)
    if (this.killed) return new Promise(() => undefined)
    const recorded = ({ key, id }: TransactionPart) => `${key} ${id}`
    const isCommitted = (part: TransactionPart) => this.#state.ids.has(recorded(part))
    if (parts.every(isCommitted)) return { applied: false }
    const transaction = new FakeTransaction(this.#state, named)
    const result = await change({
      get: key => transaction.get(key),
      put: (key, value) => transaction.put(key, value),
      delete: key => transaction.delete(key),
      committed: id => isCommitted(parts.find(part => part.id === id)!),
    })
    transaction.commit()
    for (const part of parts.filter(one => !isCommitted(one))) {
      this.#state.ids.add(recorded(part))
      this.#state.commits.push(part.id)
    }
    return { applied: true, result }
  }
}

/** Returns the store of a run that does not wait for outages. */
export function runStore(store: TrainStore, run = 'run'): RunStore {
  const outages = new Outages(0, new Log({ write: () => undefined }, 'error'), systemClock)
  return new RunStore(store, run, task => outages.retryDuringOutage(task))
}
