import type { LockRequest } from '../contract.js'

/**
 * Keeps track of the enqueues of a box that are not executed yet. An enqueue that is withdrawn in time costs no
 * transaction; when callers wait only briefly and the engine is busy, most are.
 */
export class Withdrawals {
  /** Whether each request was withdrawn, until a transaction executes it. */
  readonly #withdrawn = new Map<LockRequest, boolean>()

  /** Adds an enqueue that was submitted. */
  sent(request: LockRequest): void {
    this.#withdrawn.set(request, false)
  }

  /** Withdraws an enqueue. Returns false if a transaction may have executed it. */
  withdraw(request: LockRequest): boolean {
    if (!this.#withdrawn.has(request)) return false
    this.#withdrawn.set(request, true)
    return true
  }

  /** Called before a transaction executes an enqueue. Returns true if it was withdrawn, so must not be executed. */
  reached(request: LockRequest): boolean {
    if (this.#withdrawn.get(request)) return true
    this.#withdrawn.delete(request)
    return false
  }

  /** Removes an enqueue that has its answer. */
  answered(request: LockRequest): void {
    this.#withdrawn.delete(request)
  }
}
