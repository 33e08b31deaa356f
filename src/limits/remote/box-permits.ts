import { BusyError } from '../../base/errors.js'
import type { Costs } from '../costs.js'
import type { AcquireOptions, TenantOptions } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { Permit } from '../permit.js'
import type { BoxTerms } from './box-limiter-options.js'

/** The outcome for a caller that wanted a permit now or not at all. */
export interface TryOutcome {
  readonly outcome: Permit | BusyError
  /** The explanation in the engine's reply; undefined if the engine is unreachable. */
  readonly explanation: Explanation | undefined
}

/** Grants the permits of one limiter of a box, or of one of its keys. */
export interface BoxPermits {
  /** The error of the last request; undefined if it succeeded. */
  readonly outage: Error | undefined
  /** Also throws within the call. */
  acquire(costs?: Costs, options?: AcquireOptions): Promise<Permit>
  decide(costs?: Costs): Promise<TryOutcome>
  explain(costs?: Costs, tenant?: TenantOptions): Promise<Explanation>
  pauseUntil(time: Date | number): Promise<void>
  resume(): Promise<void>
  /**
   * Whether it can be dropped: it has no waiter, nothing to return, and was not used since then. @param since clock
   * time.
   */
  isIdle(since: number): boolean
  /**
   * Applies other terms. Reserved permits that exceed the new limits are returned and requested again. Waiters that
   * want more permits than the new limits allow are rejected.
   */
  change(terms: BoxTerms): void
  /** Admits no further caller. */
  shut(error: Error): void
  /** Rejects all waiters, once it is shut. */
  refuseAll(): void
  /** Resolves when no waiter is left, and unused permits were returned or could not be returned. */
  end(): Promise<void>
}

/** The options of a try: a caller that wants a permit now or not at all. */
export const NOW: AcquireOptions = { wait: 0 }

/** Returns the outcome of a try. A BusyError is an outcome, not a failure. */
export async function outcomeOf<T>(permit: T | Promise<T>): Promise<T | BusyError> {
  try {
    return await permit
  } catch (error) {
    if (error instanceof BusyError) return error
    throw error
  }
}
