import type { Clock, Timer } from '../../base/clock.js'
import type { Enqueue, ExtendOrYield, LockRequest } from '../contract.js'

/** When a request is first cancelled after its loss, in milliseconds. Each further time comes after twice the delay. */
const FIRST = 1000
const TIMES = 6

/** What late requests need of their engine. */
export interface LateRequestsParts {
  readonly clock: Clock
  /** Whether the session may still have the request. One that was given up is cancelled nevertheless. */
  readonly isOwn: (id: string) => boolean
  readonly cancel: (request: LockRequest) => Promise<unknown>
}

/** A request that may arrive late. */
interface Late {
  timer: Timer
  isGivenUp: boolean
}

/**
 * Requests of operations that were lost on their way to the server. The network may still deliver an operation after its
 * requests have ended, and then no caller holds what the server grants. So each request is cancelled again, six times
 * in a minute: a late request stays for about as long as it was late.
 */
export class LateRequests {
  readonly #parts: LateRequestsParts
  readonly #late = new Map<string, Late>()

  constructor(parts: LateRequestsParts) {
    this.#parts = parts
  }

  /** The operation may be executed later, or may have been executed. */
  lost(operation: Enqueue | ExtendOrYield): void {
    this.#add(operation.request)
    if (operation.type === 'extendOrYield') this.#add(operation.next)
  }

  /** The box cancels or releases the request. That may fail, so the session may seem to have the request afterwards. */
  givenUp({ id }: LockRequest): void {
    const late = this.#late.get(id)
    if (late) late.isGivenUp = true
  }

  /** Cancels no more requests. */
  end(): void {
    for (const { timer } of this.#late.values()) timer.cancel()
  }

  #add(request: LockRequest): void {
    if (this.#late.has(request.id)) return
    this.#late.set(request.id, { timer: this.#cancelAfter(FIRST, request, TIMES), isGivenUp: false })
  }

  #cancelAfter(delay: number, request: LockRequest, times: number): Timer {
    const { cancel, clock, isOwn } = this.#parts
    const run = (): void => {
      const late = this.#late.get(request.id)!
      if (times > 1) late.timer = this.#cancelAfter(2 * delay, request, times - 1)
      else this.#late.delete(request.id)
      // Otherwise the next attempt follows. If that was the last one, the grant ends with its lease.
      // mutant: given-up-request-stays
      if (late.isGivenUp || !isOwn(request.id)) cancel(request).catch(() => undefined)
    }
    return clock.after(delay, run, false)
  }
}
