import type { Claim } from 'signalbox'
import type { LockRequest, Operation, RequestStatus } from 'signalbox/engine'

/** The requests of this box that may be in entries. */
export class OwnRequests {
  readonly #requests = new Map<string, LockRequest>()
  /** The requests that can probably be granted, according to a hint or an entry. */
  readonly #woken = new Set<string>()

  /** Call before an operation is sent. */
  sent(operation: Operation): void {
    // The enqueue of a request that checks in may have failed, although it was executed.
    if (operation.type === 'enqueue' || operation.type === 'checkIn')
      this.#requests.set(operation.request.id, operation.request)
    if (operation.type === 'extendOrYield') this.#requests.set(operation.next.id, operation.next)
  }

  /** Call with the outcome of an operation. */
  done(operation: Operation, outcome: unknown): void {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
        return this.#answered(operation.request, outcome as RequestStatus)
      case 'extendOrYield': {
        const status = outcome as RequestStatus
        const isKept = status.state === 'held' && status.id === operation.request.id
        this.#remove(isKept ? operation.next.id : operation.request.id)
        if (!isKept) this.#answered(operation.next, status)
        return
      }
      case 'downgrade':
        if (outcome === true) this.#requests.set(operation.request.id, shared(operation.request))
        return
      case 'cancel':
      case 'release':
        return this.#remove(operation.request.id)
      case 'commit': {
        const { guard, release } = operation
        const { state } = outcome as { readonly state: string }
        if (guard && release && state === 'committed') this.#remove(guard.request.id)
        return
      }
      default:
    }
  }

  /** Call when an enqueue has failed. */
  failed(id: string): void {
    this.#remove(id)
  }

  /** Call when a hint or an entry shows that keys are reserved for the request. */
  woken(id: string): void {
    if (this.#requests.has(id)) this.#woken.add(id)
  }

  isWoken(id: string): boolean {
    return this.#woken.has(id)
  }

  get(id: string): LockRequest | undefined {
    return this.#requests.get(id)
  }

  all(): LockRequest[] {
    return [...this.#requests.values()]
  }

  #answered({ id }: LockRequest, { state }: RequestStatus): void {
    this.#woken.delete(id)
    if (state !== 'held' && state !== 'queued') this.#remove(id)
  }

  #remove(id: string): void {
    this.#requests.delete(id)
    this.#woken.delete(id)
  }
}

function shared(request: LockRequest): LockRequest {
  return { ...request, claims: request.claims.map(({ key }) => ({ key, mode: 'shared' })) }
}

/** Returns the keys that a request claims exclusively. */
export function exclusiveKeys(claims: readonly Claim[]): readonly string[] {
  return claims.filter(({ mode }) => mode === 'exclusive').map(({ key }) => key)
}
