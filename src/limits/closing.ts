import type { Clock } from '../clock.js'
import { milliseconds, type Duration } from '../duration.js'
import { checkOptions } from '../options.js'

/** How a limiter is closed. */
export interface LimiterCloseOptions {
  /** Let those who wait have their turn: true for as long as it takes, or how long at the most. Default: don't. */
  drain?: boolean | Duration | undefined
}

const DRAIN_BOUNDS = { least: 0, most: Infinity }

/**
 * How long those who wait are let have their turn: milliseconds.
 * @throws InvalidArgumentError that names the option, what it got and what it takes.
 */
export function drainOf(options: LimiterCloseOptions): number {
  checkOptions(options, ['drain'])
  const { drain = false } = options
  if (typeof drain === 'boolean') return drain ? Infinity : 0
  return milliseconds('drain', drain, DRAIN_BOUNDS)
}

/** What lets nobody in any more, but those who wait still have. */
interface Closing {
  /** Rejects all who wait. */
  refuseAll(): void
  /** Resolves when nobody waits any more. */
  end(): Promise<void>
}

/** Resolves when the last caller of limiters that take no new ones has gone. @param drain milliseconds, after which all are refused. */
export async function endAll(all: readonly Closing[], drain: number, clock: Clock): Promise<void> {
  const refuseAll = (): void => all.forEach(waiters => waiters.refuseAll())
  if (drain === 0) refuseAll()
  const timer = drain === 0 || drain === Infinity ? undefined : clock.after(drain, refuseAll, true)
  await Promise.all(all.map(waiters => waiters.end()))
  timer?.cancel()
}
