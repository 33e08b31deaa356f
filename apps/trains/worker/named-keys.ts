import type { Transaction } from '../messages/message-type.js'

/** A transaction of several messages, as one of them may use it: with the keys that it named itself. */
export class NamedKeys implements Transaction {
  readonly #transaction: Transaction
  readonly #keys: readonly string[]

  constructor(transaction: Transaction, keys: readonly string[]) {
    this.#transaction = transaction
    this.#keys = keys
  }

  get(key: string): unknown {
    return this.#transaction.get(this.#named(key))
  }

  put(key: string, value: unknown): void {
    this.#transaction.put(this.#named(key), value)
  }

  delete(key: string): void {
    this.#transaction.delete(this.#named(key))
  }

  #named(key: string): string {
    // Applied alone, such a message is given up by the store, which then says so.
    if (!this.#keys.includes(key)) throw new Error(`the message touches ${key}, which it did not name`)
    return key
  }
}
