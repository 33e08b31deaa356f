import type { LockRequest } from '../../engine/contract.js'

/**
 * The enqueues of a box that have not been carried out yet. One that is cancelled before a transaction has reached it
 * costs no transaction at all: where many wait for a moment only and the database is busy, that is what most of them do.
 */
export class Withdrawals {
  /** By request: whether it was withdrawn, for those that no transaction has reached. */
  readonly #withdrawn = new Map<LockRequest, boolean>()

  /** An enqueue is on its way. */
  sent(request: LockRequest): void {
    this.#withdrawn.set(request, false)
  }

  /** Takes an enqueue back; false when a transaction may have carried it out. */
  withdraw(request: LockRequest): boolean {
    if (!this.#withdrawn.has(request)) return false
    this.#withdrawn.set(request, true)
    return true
  }

  /** A transaction has come to the enqueue; true when it has been withdrawn and must not be carried out. */
  reached(request: LockRequest): boolean {
    if (this.#withdrawn.get(request)) return true
    this.#withdrawn.delete(request)
    return false
  }

  /** The enqueue has its answer, whichever. */
  answered(request: LockRequest): void {
    this.#withdrawn.delete(request)
  }
}
