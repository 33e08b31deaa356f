import type { LockRequest } from '../contract.js'

/**
 * The enqueues of a box that have not been executed yet. One that is withdrawn before a transaction has reached it
 * costs no transaction at all. Most are, where many callers wait for a moment only and the engine is busy.
 */
export class Withdrawals {
  /** By request: whether it was withdrawn, for those that no transaction has reached. */
  readonly #withdrawn = new Map<LockRequest, boolean>()

  /** An enqueue is on its way. */
  sent(request: LockRequest): void {
    this.#withdrawn.set(request, false)
  }

  /** Withdraws an enqueue; false when a transaction may have carried it out. */
  withdraw(request: LockRequest): boolean {
    if (!this.#withdrawn.has(request)) return false
    this.#withdrawn.set(request, true)
    return true
  }

  /** A transaction has come to the enqueue; true when it has been withdrawn and must not be executed. */
  reached(request: LockRequest): boolean {
    if (this.#withdrawn.get(request)) return true
    this.#withdrawn.delete(request)
    return false
  }

  /** The enqueue has its answer. */
  answered(request: LockRequest): void {
    this.#withdrawn.delete(request)
  }
}
