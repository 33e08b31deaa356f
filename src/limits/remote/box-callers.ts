import { Callers } from '../callers.js'
import type { Explanation } from '../limiter.js'
import { PermitWaiter } from '../local/permit-waiter.js'
import type { Permit } from '../permit.js'

/** A caller that wants a permit now or not at all: a try. It waits for the engine's answer only. */
export class TryWaiter extends PermitWaiter {
  /** What the engine reported besides the outcome; undefined until it has answered. */
  explanation: Explanation | undefined

  constructor(
    n: number,
    settle: (outcome: Permit | Promise<Permit>) => void,
    /** Whether it wants an explanation, too. */
    readonly isDecision: boolean,
  ) {
    super(n, 0, settle)
  }
}

/** Whether a waiter gets nothing before an answer that brings its explanation. */
export function isUnanswered(waiter: PermitWaiter): boolean {
  return waiter instanceof TryWaiter && waiter.isDecision && waiter.explanation === undefined
}

/** The callers of this process at one limiter of a box. */
export class BoxCallers extends Callers<Permit> {
  readonly tries = new Set<TryWaiter>()

  override enter(
    waiter: PermitWaiter,
    priority: number,
    signal: AbortSignal | undefined,
    deadline: number,
  ): void {
    if (waiter instanceof TryWaiter) this.tries.add(waiter)
    super.enter(waiter, priority, signal, deadline)
  }

  override leave(waiter: PermitWaiter): void {
    if (waiter instanceof TryWaiter) this.tries.delete(waiter)
    super.leave(waiter)
  }

  /** Whether any waiter waits for a turn that is yet to come. */
  get waits(): boolean {
    return this.queue.callers > this.tries.size
  }

  /** The waiters before a new one, and how many permits they want. A try is gone before any waiter's turn. */
  get before(): { readonly callers: number; readonly permits: number } {
    let { permits } = this.queue
    for (const { n } of this.tries) permits -= n
    return { callers: this.queue.callers - this.tries.size, permits }
  }

  /**
   * The first waiter that can have the permits of one instant.
   * @param isBatch whether it may leave some of them to others.
   */
  firstFor(permits: number, isBatch: boolean): PermitWaiter | undefined {
    for (let waiter = this.queue.first; waiter; waiter = this.queue.after(waiter)) {
      const fits = waiter.n === permits || (isBatch && waiter.n < permits)
      if (fits && !isUnanswered(waiter)) return waiter
    }
    return undefined
  }
}
