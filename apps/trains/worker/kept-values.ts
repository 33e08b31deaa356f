import type { Transaction } from '../messages/message-type.js'

/**
 * The values of a transaction of many messages: each is read and written once, however many messages touch it, and what
 * a message that failed has changed can be taken back.
 */
export class KeptValues implements Transaction {
  readonly #transaction: Transaction
  readonly #values = new Map<string, unknown>()
  readonly #changed = new Set<string>()
  /** What the message under way has changed. */
  readonly #own = new Map<string, unknown>()

  constructor(transaction: Transaction) {
    this.#transaction = transaction
  }

  get(key: string): unknown {
    if (this.#own.has(key)) return this.#own.get(key)
    if (this.#values.has(key)) return this.#values.get(key)
    const value = this.#transaction.get(key)
    this.#values.set(key, value)
    return value
  }

  put(key: string, value: unknown): void {
    this.#own.set(key, value)
  }

  delete(key: string): void {
    this.#own.set(key, undefined)
  }

  /** Ends a message that went through. */
  keep(): void {
    for (const [key, value] of this.#own) {
      this.#values.set(key, value)
      this.#changed.add(key)
    }
    this.#own.clear()
  }

  /** Takes back what the message under way has changed. */
  takeBack(): void {
    this.#own.clear()
  }

  /** Writes all that the messages have changed. */
  write(): void {
    for (const key of this.#changed) {
      const value = this.#values.get(key)
      if (value === undefined) this.#transaction.delete(key)
      else this.#transaction.put(key, value)
    }
  }
}
