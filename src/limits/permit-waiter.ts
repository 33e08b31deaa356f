import { Waiter } from '../base/waiters.js'
import type { Permit } from './permit.js'

/** A caller that waits for permits, or for a slot of a concurrency. */
export class PermitWaiter<T = Permit> extends Waiter {
  /**
   * @param settle resolves the caller's promise. To save memory, it is the only one of the promise's functions that is
   * kept: a rejection is passed to it as a rejected promise.
   */
  constructor(
    n: number,
    /** Its place in the order of the callers of all threads; 0 with one thread. */
    readonly arrival: number,
    readonly settle: (outcome: T | Promise<T>) => void,
  ) {
    super(n)
  }

  reject(error: Error): void {
    this.settle(Promise.reject(error))
  }
}
