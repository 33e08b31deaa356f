import { Waiter } from '../../waiters.js'
import type { Permit } from '../permit.js'

/** A caller that waits for permits, or for what has to come before them. */
export class PermitWaiter<T = Permit> extends Waiter {
  /**
   * @param settle of the caller's promise. Only this one of a promise's two functions is kept: a rejection is passed to
   * it as a promise.
   */
  constructor(
    n: number,
    /** When it came, among the callers of all threads; 0 where there is one thread. */
    readonly arrival: number,
    readonly settle: (outcome: T | Promise<T>) => void,
  ) {
    super(n)
  }

  reject(error: Error): void {
    this.settle(Promise.reject(error))
  }
}
