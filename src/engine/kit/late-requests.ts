import type { Clock, Timer } from '../../clock.js'
import type { LockRequest } from '../contract.js'

/** When a request is first cancelled after its loss, in milliseconds. Each further time comes after twice the delay. */
const FIRST = 1000
const TIMES = 6

/** What late requests need of their engine. */
export interface LateRequestsParts {
  readonly clock: Clock
  /** Whether the session still has the request, so that it must not be cancelled. */
  readonly isOwn: (id: string) => boolean
  readonly cancel: (request: LockRequest) => Promise<unknown>
}

/**
 * Requests whose enqueue was lost on its way to the server. The network may still deliver one after the request has
 * ended, and then nobody holds what the server grants. So each is cancelled again, six times in a minute: a late request
 * stays for about as long as it was late.
 */
export class LateRequests {
  readonly #parts: LateRequestsParts
  readonly #timers = new Map<string, Timer>()

  constructor(parts: LateRequestsParts) {
    this.#parts = parts
  }

  /** An enqueue may be executed later, or may have been executed. */
  lost(request: LockRequest): void {
    if (!this.#timers.has(request.id)) this.#cancelAfter(FIRST, request, TIMES)
  }

  /** Cancels no more requests. */
  end(): void {
    for (const timer of this.#timers.values()) timer.cancel()
  }

  #cancelAfter(delay: number, request: LockRequest, times: number): void {
    const { cancel, clock, isOwn } = this.#parts
    const run = (): void => {
      this.#timers.delete(request.id)
      // Otherwise the next attempt follows. If that was the last one, the grant ends with its lease.
      if (!isOwn(request.id)) cancel(request).catch(() => undefined)
      if (times > 1) this.#cancelAfter(2 * delay, request, times - 1)
    }
    this.#timers.set(request.id, clock.after(delay, run, false))
  }
}
