import type { Claim } from '../engine/claim.js'
import type { LockRequest } from '../engine/contract.js'
import { UnavailableError } from '../base/errors.js'
import { PendingRequest, type RequestOwner, type QueueSession } from './pending-request.js'

/** Maximum number of requests of a queue for permits that the engine has not yet granted. */
const MAX_PENDING = 128

/**
 * The requests of a local queue that the engine has not granted, oldest first. There is at most one, except for
 * permits: each caller has its own until the engine queues one of them, because then the others would wait, too.
 */
export class Requests {
  readonly #session: QueueSession
  readonly #owner: RequestOwner
  readonly #claims: readonly Claim[]
  /** False if all claims are shared: one request serves all readers. */
  readonly #areMany: boolean
  readonly #pending: PendingRequest[] = []

  constructor(session: QueueSession, owner: RequestOwner, claims: readonly Claim[], areMany: boolean) {
    this.#session = session
    this.#owner = owner
    this.#claims = claims
    this.#areMany = areMany
  }

  get size(): number {
    return this.#pending.length
  }

  get oldest(): PendingRequest | undefined {
    return this.#pending[0]
  }

  get newest(): PendingRequest | undefined {
    return this.#pending.at(-1)
  }

  /** Whether one more may be sent next to those that the engine has not granted. */
  get mayAdd(): boolean {
    const { length } = this.#pending
    if (length === 0) return true
    return this.#areMany && length < MAX_PENDING && !this.#pending.some(({ hasWaited }) => hasWaited)
  }

  /** A request of a caller with this label, not yet sent. */
  create(label: string | undefined): LockRequest {
    const session = this.#session
    return { id: session.nextRequest(), session: session.id, claims: this.#claims, label }
  }

  /** Adds a request that is being sent. @param args see {@link PendingRequest} */
  add(
    request: LockRequest,
    lease: number,
    wait: number,
    sentAt: number,
    retryUntil?: number,
  ): PendingRequest {
    const pending = new PendingRequest(this.#session, this.#owner, request, lease, wait, sentAt, retryUntil)
    this.#pending.push(pending)
    return pending
  }

  /** Removes a request unless it was removed before, and leaves it in the engine. */
  remove(pending: PendingRequest): void {
    pending.stop()
    const index = this.#pending.indexOf(pending)
    if (index !== -1) this.#pending.splice(index, 1)
  }

  /** Removes a request, and cancels it in the engine: now, or when the reply to its last operation arrives. */
  drop(pending: PendingRequest): void {
    const { isQueued } = pending
    this.remove(pending)
    if (isQueued) pending.cancelInEngine()
  }

  dropAll(): void {
    for (const pending of [...this.#pending]) this.drop(pending)
  }

  /** Cancels a request that the engine may have applied although it failed. */
  cancelFailed(request: LockRequest, lease: number, error: unknown): void {
    // mutant: unclear-try-stays
    if (!(error instanceof UnavailableError)) this.#session.cleanUp({ type: 'cancel', request }, lease)
  }
}
