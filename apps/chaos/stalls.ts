import { systemClock } from '../../src/clock.js'

/** A process that does not run for so much of a lease has stalled. */
const LONG = 1 / 4
const LOOKS = 16

/** Tells, until the process ends, when it did not run for a quarter of a lease: times of the monotonic clock. */
export function watchStalls(lease: number, tell: (from: number, until: number) => void): void {
  let last = systemClock.now()
  const look = (): void => {
    const now = systemClock.now()
    if (now - last >= LONG * lease) tell(last, now)
    last = now
  }
  setInterval(look, lease / LOOKS).unref()
}
