import { systemClock } from 'signalbox/engine'

/** Time that a waiter has to take its turn when it gets the lock, in milliseconds. */
const TURN = 1000
const LOOKS = 4

/**
 * Returns the shortest stall that can make a client late for a renewal or for its turn, in milliseconds: a quarter of
 * the shorter one.
 */
export function longTime(lease: number): number {
  return Math.min(lease, TURN) / 4
}

/**
 * Reports each period of at least {@link longTime} in which this process did not run, in times of the monotonic clock.
 */
export function watchStalls(lease: number, report: (from: number, until: number) => void): void {
  let last = systemClock.now()
  const look = (): void => {
    const now = systemClock.now()
    if (now - last >= longTime(lease)) report(last, now)
    last = now
  }
  setInterval(look, longTime(lease) / LOOKS).unref()
}
