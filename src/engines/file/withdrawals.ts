/**
 * The enqueues of a box that have not been carried out yet. One that is cancelled before a transaction has reached it
 * costs no transaction at all: where many wait for a moment only and the database is busy, that is what most of them do.
 */
export class Withdrawals {
  /** By request id: whether it was withdrawn, for those that no transaction has reached. */
  readonly #withdrawn = new Map<string, boolean>()

  /** An enqueue is on its way. */
  sent(id: string): void {
    this.#withdrawn.set(id, false)
  }

  /** Takes an enqueue back; false when a transaction may have carried it out. */
  withdraw(id: string): boolean {
    if (!this.#withdrawn.has(id)) return false
    this.#withdrawn.set(id, true)
    return true
  }

  /** A transaction has come to the enqueue; true when it has been withdrawn and must not be carried out. */
  reached(id: string): boolean {
    if (this.#withdrawn.get(id)) return true
    this.#withdrawn.delete(id)
    return false
  }

  /** The enqueue has its answer, whichever. */
  answered(id: string): void {
    this.#withdrawn.delete(id)
  }
}
