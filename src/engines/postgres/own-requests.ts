import type { LockRequest, RequestStatus } from '../../engine/contract.js'
import type { ServerOperation } from './call-arguments.js'

interface Own {
  readonly request: LockRequest
  isWaiting: boolean
  /** Whether a hint has reported this since the last check-in. */
  isReserved?: boolean
}

/** The requests of this session that may be on the server. */
export class OwnRequests {
  readonly #own = new Map<string, Own>()

  /** The requests that are queued, as far as is known. */
  get waiting(): readonly LockRequest[] {
    return [...this.#own.values()].filter(({ isWaiting }) => isWaiting).map(({ request }) => request)
  }

  get all(): readonly LockRequest[] {
    return [...this.#own.values()].map(({ request }) => request)
  }

  has(id: string): boolean {
    return this.#own.has(id)
  }

  /** Call with a hint for a request. */
  reserved(id: string): void {
    const own = this.#own.get(id)
    if (own) own.isReserved = true
  }

  /** Whether a check-in will probably claim the keys. */
  claims({ id }: LockRequest): boolean {
    return this.#own.get(id)?.isReserved === true
  }

  /** Call before an operation is sent. */
  sending(operation: ServerOperation): void {
    if (operation.type === 'enqueue') this.#remember(operation.request)
    if (operation.type === 'extendOrYield') this.#remember(operation.next)
  }

  /** Call with an operation that certainly did not reach the server. */
  unsent(operation: ServerOperation): void {
    if (operation.type === 'enqueue') this.#own.delete(operation.request.id)
    if (operation.type === 'extendOrYield') this.#own.delete(operation.next.id)
  }

  /** Call with the outcome of an operation. */
  settled(operation: ServerOperation, outcome: unknown): void {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
        return this.#follow(operation.request, outcome as RequestStatus)
      case 'extendOrYield': {
        const status = outcome as RequestStatus
        const isKept = status.state === 'held' && status.id === operation.request.id
        this.#own.delete((isKept ? operation.next : operation.request).id)
        if (!isKept) this.#follow(operation.next, status)
        return
      }
      case 'cancel':
      case 'release':
        this.#own.delete(operation.request.id)
        return
      case 'renew':
        if (outcome === false) this.#own.delete(operation.request.id)
        return
      case 'commit':
        if (operation.guard && operation.release && (outcome as { state: string }).state === 'committed')
          this.#own.delete(operation.guard.request.id)
        return
      default:
    }
  }

  #remember(request: LockRequest): void {
    this.#own.set(request.id, { request, isWaiting: false })
  }

  #follow(request: LockRequest, { state }: RequestStatus): void {
    // The request may have been cancelled, by an operation that overtook a check-in.
    if (!this.#own.has(request.id)) return
    if (state === 'held' || state === 'queued')
      this.#own.set(request.id, { request, isWaiting: state === 'queued' })
    else this.#own.delete(request.id)
  }
}
