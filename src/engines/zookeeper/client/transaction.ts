import type { Call, OperationOptions } from './call.js'
import type { Calls, CreatedTogether } from './calls.js'
import type { MultiOutcome } from './multi.js'
import type { CreateOptions } from './node-kind.js'
import { checkPath } from './paths.js'
import type { Stat } from './stat.js'

/** The answers of a transaction, in the order of its parts: of a creation, of a change, of a deletion or a check. */
export type TransactionAnswer = CreatedTogether | Stat | undefined

/** Gathers changes and checks, and carries them out together. */
export class Transaction {
  readonly #calls: Calls
  readonly #carryOut: (parts: readonly Call<unknown>[], options: OperationOptions) => Promise<MultiOutcome>
  readonly #parts: Call<unknown>[] = []

  constructor(
    calls: Calls,
    carryOut: (parts: readonly Call<unknown>[], options: OperationOptions) => Promise<MultiOutcome>,
  ) {
    this.#calls = calls
    this.#carryOut = carryOut
  }

  create(path: string, data: string | Uint8Array = '', options: CreateOptions = {}): this {
    checkPath(path, options.sequential)
    return this.#add(this.#calls.create(path, Buffer.from(data), options))
  }

  delete(path: string, version = -1): this {
    checkPath(path)
    return this.#add(this.#calls.delete(path, version))
  }

  setData(path: string, data: string | Uint8Array, version = -1): this {
    checkPath(path)
    return this.#add(this.#calls.setData(path, Buffer.from(data), version))
  }

  /** Nothing is carried out unless the node is there, in this version. */
  check(path: string, version = -1): this {
    checkPath(path)
    return this.#add(this.#calls.check(path, version))
  }

  /**
   * Carries all out.
   * @throws RefusedError of the part at fault, and what every operation throws; nothing was applied then, unless it is a
   * ConnectionLossError
   */
  async commit(options: OperationOptions = {}): Promise<readonly TransactionAnswer[]> {
    const outcome = await this.outcome(options)
    if (!outcome.done) throw outcome.error
    return outcome.answers as TransactionAnswer[]
  }

  /** As {@link commit}, but a refusal is an answer, with the place of the part at fault. */
  outcome(options: OperationOptions = {}): Promise<MultiOutcome> {
    return this.#carryOut(this.#parts, options)
  }

  /** How many parts were gathered. */
  get size(): number {
    return this.#parts.length
  }

  #add(part: Call<unknown>): this {
    this.#parts.push(part)
    return this
  }
}
