import type { Clock } from '../base/clock.js'
import { milliseconds, type Duration } from '../base/duration.js'
import { checkOptions } from '../base/options.js'
import { WAIT_BOUNDS } from './limit-options.js'

/** Options of closing a limiter. */
export interface LimiterCloseOptions {
  /** Whether to serve the callers that wait: true without a time limit, or the maximum time. Default false. */
  drain?: boolean | Duration | undefined
}

/** Returns the time for which waiting callers are still served, in milliseconds. @throws InvalidArgumentError */
export function drainOf(options: LimiterCloseOptions): number {
  checkOptions(options, ['drain'])
  const { drain = false } = options
  if (typeof drain === 'boolean') return drain ? Infinity : 0
  return milliseconds('drain', drain, WAIT_BOUNDS)
}

/** A queue that admits no further caller, but still has waiters. */
interface Closing {
  /** Rejects all waiters. */
  refuseAll(): void
  /** Resolves when no waiter is left. */
  end(): Promise<void>
}

/**
 * Resolves when the last waiter of these queues has left.
 * @param drain time after which all waiters are rejected, in milliseconds.
 */
export async function closeAll(all: readonly Closing[], drain: number, clock: Clock): Promise<void> {
  const refuseAll = (): void => all.forEach(waiters => waiters.refuseAll())
  if (drain === 0) refuseAll()
  const timer = drain === 0 || drain === Infinity ? undefined : clock.after(drain, refuseAll, true)
  await Promise.all(all.map(waiters => waiters.end()))
  timer?.cancel()
}
