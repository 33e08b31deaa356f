import type { Clock } from '../clock.js'
import { milliseconds, type Duration } from '../duration.js'
import { checkOptions } from '../options.js'

/** How a limiter is closed. */
export interface LimiterCloseOptions {
  /**
   * Lets waiters have their turn: true for no time limit, or the maximum duration. Default: false.
   */
  drain?: boolean | Duration | undefined
}

const DRAIN_BOUNDS = { min: 0, max: Infinity }

/**
 * How long waiters may continue to have their turn, in milliseconds.
 * @throws InvalidArgumentError that names the option, what it got and what it takes.
 */
export function drainOf(options: LimiterCloseOptions): number {
  checkOptions(options, ['drain'])
  const { drain = false } = options
  if (typeof drain === 'boolean') return drain ? Infinity : 0
  return milliseconds('drain', drain, DRAIN_BOUNDS)
}

/** Admits no further caller, but still has waiters. */
interface Closing {
  /** Rejects all waiters. */
  refuseAll(): void
  /** Resolves when no waiter is left. */
  end(): Promise<void>
}

/**
 * Resolves when the last waiter of limiters that are shut has left.
 * @param drain milliseconds, after which all waiters are rejected.
 */
export async function endAll(all: readonly Closing[], drain: number, clock: Clock): Promise<void> {
  const refuseAll = (): void => all.forEach(waiters => waiters.refuseAll())
  if (drain === 0) refuseAll()
  const timer = drain === 0 || drain === Infinity ? undefined : clock.after(drain, refuseAll, true)
  await Promise.all(all.map(waiters => waiters.end()))
  timer?.cancel()
}
