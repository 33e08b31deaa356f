import type { Call, OperationOptions } from './call.js'
import { calls, type CreatedTogether, type CreateOptions } from './calls.js'
import type { MultiOutcome } from './multi.js'
import type { Stat } from './stat.js'

/** The result of each part of a transaction, in order: of a creation, of a change, or of a deletion or check. */
export type TransactionAnswer = CreatedTogether | Stat | undefined

type Execute = (parts: readonly Call<unknown>[], options: OperationOptions) => Promise<MultiOutcome>

/** Collects changes and checks, and applies them together. */
export class Transaction {
  readonly #execute: Execute
  readonly #parts: Call<unknown>[] = []

  constructor(execute: Execute) {
    this.#execute = execute
  }

  create(path: string, data: string | Uint8Array = '', options: CreateOptions = {}): this {
    return this.#add(calls.create(path, data, options))
  }

  delete(path: string, version = -1): this {
    return this.#add(calls.delete(path, version))
  }

  setData(path: string, data: string | Uint8Array, version = -1): this {
    return this.#add(calls.setData(path, data, version))
  }

  /** Requires that the node exists, in this version. */
  check(path: string, version = -1): this {
    return this.#add(calls.check(path, version))
  }

  /**
   * Applies all parts.
   * @throws RefusedError of the part that failed, or an error of any operation. Nothing was applied, unless it is a
   * ConnectionLossError
   */
  async commit(options: OperationOptions = {}): Promise<readonly TransactionAnswer[]> {
    const outcome = await this.outcome(options)
    if (!outcome.done) throw outcome.error
    return outcome.answers as TransactionAnswer[]
  }

  /** Like {@link commit}, but returns a refusal, with the index of the part that failed. */
  outcome(options: OperationOptions = {}): Promise<MultiOutcome> {
    return this.#execute(this.#parts, options)
  }

  /** Number of parts. */
  get size(): number {
    return this.#parts.length
  }

  #add(part: Call<unknown>): this {
    this.#parts.push(part)
    return this
  }
}
