import type { Clock, Timer } from '../../base/clock.js'
import type { Enqueue, ExtendOrYield, LockRequest } from '../contract.js'

/** Delay from a loss to the first cancel of its request, in milliseconds. Each further delay is twice as long. */
const FIRST = 1000
const TIMES = 6

/** Parts of an engine that {@link LateRequests} uses. */
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
 * Cancels the requests of operations that were lost on their way to a server. The network may still deliver such an
 * operation after its request has ended; then the server would grant a lock that no caller holds. So each request is
 * cancelled six times, 1 to 63 seconds after the loss.
 *
 * ```ts
 * import { LateRequests, systemClock, type LockRequest } from 'signalbox/engine'
 *
 * const own = new Set<string>()
 * const late = new LateRequests({
 *   clock: systemClock,
 *   isOwn: id => own.has(id),
 *   cancel: async (request: LockRequest) => console.log('cancel', request.id),
 * })
 * late.end()
 * ```
 */
export class LateRequests {
  readonly #parts: LateRequestsParts
  readonly #late = new Map<string, Late>()

  constructor(parts: LateRequestsParts) {
    this.#parts = parts
  }

  /** Called when an operation got no reply: it may be executed later, or may have been executed. */
  lost(operation: Enqueue | ExtendOrYield): void {
    this.#add(operation.request)
    if (operation.type === 'extendOrYield') this.#add(operation.next)
  }

  /**
   * Called when the box cancels or releases the request. That may fail, so the session may seem to keep the request.
   */
  givenUp({ id }: LockRequest): void {
    const late = this.#late.get(id)
    if (late) late.isGivenUp = true
  }

  /** Stops: cancels no more requests. */
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
