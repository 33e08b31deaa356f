import type { Call, OperationOptions } from './call.js'
import { calls, type CreatedTogether, type CreateOptions } from './calls.js'
import type { MultiOutcome } from './multi.js'
import type { Stat } from './stat.js'

/** The answers of a transaction, in the order of its parts: of a creation, of a change, of a deletion or a check. */
export type TransactionAnswer = CreatedTogether | Stat | undefined

type CarryOut = (parts: readonly Call<unknown>[], options: OperationOptions) => Promise<MultiOutcome>

/** Gathers changes and checks, and carries them out together. */
export class Transaction {
  readonly #carryOut: CarryOut
  readonly #parts: Call<unknown>[] = []

  constructor(carryOut: CarryOut) {
    this.#carryOut = carryOut
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

  /** Nothing is carried out unless the node is there, in this version. */
  check(path: string, version = -1): this {
    return this.#add(calls.check(path, version))
  }

  /**
   * Carries all out.
   * @throws RefusedError of the part at fault, and what every operation throws. Nothing was applied then, unless it is
   * a ConnectionLossError
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
