import { BusyError } from '../../errors.js'
import type { AcquireOptions } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { Permit } from '../permit.js'
import type { BoxTerms } from './box-limiter-options.js'

/** The outcome for a caller that wanted a permit at once or not at all. */
export interface TryOutcome {
  readonly outcome: Permit | BusyError
  /** What the engine reported together with the outcome; undefined when the engine could not be asked. */
  readonly explanation: Explanation | undefined
}

/** Decides about the permits of one limiter of a box, or of one of its keys. */
export interface BoxPermits {
  /** Why the engine could not be asked the last time; undefined when it could. */
  readonly outage: Error | undefined
  acquire(n?: number, options?: AcquireOptions): Promise<Permit>
  decide(): Promise<TryOutcome>
  explain(n?: number): Promise<Explanation>
  pauseUntil(time: Date | number): Promise<void>
  resume(): Promise<void>
  /**
   * Whether it can be forgotten: it has no waiter, and has owed nothing and been unused since then. @param since clock
   * time.
   */
  isIdle(since: number): boolean
  /**
   * Uses other terms from now on. Reserved permits that do not keep the new limits are requested again. Waiters that
   * want more permits than the new limits allow are rejected.
   */
  change(terms: BoxTerms): void
  /** Admits no further caller. */
  shut(error: Error): void
  /** Rejects all waiters, once it is shut. */
  refuseAll(): void
  /** Resolves when no waiter is left and unused permits were given back, or could not be. */
  end(): Promise<void>
}

/** The options of a try: a caller that wants a permit now or not at all. */
export const NOW: AcquireOptions = { wait: 0 }

/** The outcome of a try: a BusyError is no failure. */
export async function tried<T>(permit: T | Promise<T>): Promise<T | BusyError> {
  try {
    return await permit
  } catch (error) {
    if (error instanceof BusyError) return error
    throw error
  }
}
