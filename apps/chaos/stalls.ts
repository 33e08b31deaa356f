import { systemClock } from 'signalbox/engine'

/** So long a waiter has to come when the lock passes to it, in milliseconds. */
const TURN = 1000
const LOOKS = 4

/**
 * The shortest stall that can make a client late for a renewal or for its turn: a quarter of either, in milliseconds.
 */
export function longTime(lease: number): number {
  return Math.min(lease, TURN) / 4
}

/** Reports, until the process ends, when it did not run for a {@link longTime}: times of the monotonic clock. */
export function watchStalls(lease: number, report: (from: number, until: number) => void): void {
  let last = systemClock.now()
  const look = (): void => {
    const now = systemClock.now()
    if (now - last >= longTime(lease)) report(last, now)
    last = now
  }
  setInterval(look, longTime(lease) / LOOKS).unref()
}
