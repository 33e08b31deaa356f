import type { Timer } from '../clock.js'
import type { LockEvent } from '../diagnostics.js'
import type { LocalGrant } from './grant.js'
import type { AcquireRequest } from './lock-options.js'

/** A caller that waits for a grant. */
export class Waiter {
  previous: Waiter | undefined
  next: Waiter | undefined
  isQueued = true
  timer: Timer | undefined
  /** Stops listening to the caller's signal. */
  letGo: (() => void) | undefined

  constructor(
    readonly request: AcquireRequest,
    /** When it began to wait: clock time. */
    readonly since: number,
    readonly resolve: (grant: LocalGrant) => void,
    readonly reject: (error: Error) => void,
    /** The event that was published about its request, if that had a listener. */
    readonly event: LockEvent | undefined,
  ) {}
}

/** Waiters in the order of their arrival. A waiter can leave from any place. */
export class Waiters {
  #first: Waiter | undefined
  #last: Waiter | undefined
  /** The latest end of a wait among all waiters that came since the list was last empty: clock time. */
  #until = -Infinity

  get first(): Waiter | undefined {
    return this.#first
  }

  /** The time by which all waiters have given up: clock time; -Infinity when there is none. */
  get until(): number {
    return this.#until
  }

  append(waiter: Waiter): void {
    waiter.previous = this.#last
    if (this.#last) this.#last.next = waiter
    else this.#first = waiter
    this.#last = waiter
    this.#until = Math.max(this.#until, waiter.since + waiter.request.wait)
  }

  /** Takes a waiter out, with its timer and its listener. */
  remove(waiter: Waiter): void {
    waiter.isQueued = false
    if (waiter.previous) waiter.previous.next = waiter.next
    else this.#first = waiter.next
    if (!this.#first) this.#until = -Infinity
    if (waiter.next) waiter.next.previous = waiter.previous
    else this.#last = waiter.previous
    waiter.timer?.cancel()
    waiter.letGo?.()
  }
}
