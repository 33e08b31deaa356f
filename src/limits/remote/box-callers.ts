import { Callers, PermitWaiter } from '../callers.js'
import type { Terms } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { Permit } from '../permit.js'

/** A *try*: a caller that wants a permit now or not at all. It waits only for the engine's reply. */
export class TryWaiter extends PermitWaiter {
  /** The explanation in the engine's reply; undefined before that. */
  explanation: Explanation | undefined
  /** Whether it was requested again, because permits of the reply that refused it could not be used. */
  isRepeated = false

  constructor(
    n: number,
    settle: (outcome: Permit | Promise<Permit>) => void,
    /** Whether it also wants an explanation. */
    readonly isDecision: boolean,
  ) {
    super(n, 0, settle)
  }
}

/** Whether a try still waits for the reply with its explanation. */
export function isUnanswered(waiter: PermitWaiter): boolean {
  return waiter instanceof TryWaiter && waiter.isDecision && waiter.explanation === undefined
}

/** The callers of this process at one limiter of a box. */
export class BoxCallers extends Callers {
  readonly tries = new Set<TryWaiter>()
  /** Number of permits that the tries want. */
  #tried = 0

  override enter(waiter: PermitWaiter, terms: Terms, deadline: number): void {
    if (waiter instanceof TryWaiter) {
      this.tries.add(waiter)
      this.#tried += waiter.n
    }
    super.enter(waiter, terms, deadline)
  }

  override leave(waiter: PermitWaiter): void {
    if (waiter instanceof TryWaiter) {
      this.tries.delete(waiter)
      this.#tried -= waiter.n
    }
    super.leave(waiter)
  }

  /** Number of callers that wait for their turn, not only for a reply. */
  get waiting(): number {
    return this.queue.callers - this.tries.size
  }

  /** Number of permits that these callers want. */
  get wanted(): number {
    return this.queue.permits - this.#tried
  }

  /** The first waiter that may get permits now. */
  get firstAnswered(): PermitWaiter | undefined {
    let waiter = this.queue.first
    // mutant: permits-wait-for-tries
    while (waiter && isUnanswered(waiter)) waiter = this.queue.after(waiter)
    return waiter
  }

  /**
   * Returns the first waiter that can use the permits of one instant.
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
