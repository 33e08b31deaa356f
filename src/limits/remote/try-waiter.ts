import type { Explanation } from '../limiter.js'
import { PermitWaiter } from '../local/permit-waiter.js'
import type { Permit } from '../permit.js'

/** A caller that wants a permit now or not at all: a try. It waits for the engine's answer only. */
export class TryWaiter extends PermitWaiter {
  /** What the engine told beside the outcome; undefined until it has answered. */
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
export function isUntold(waiter: PermitWaiter): boolean {
  return waiter instanceof TryWaiter && waiter.isDecision && waiter.explanation === undefined
}
