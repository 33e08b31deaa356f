import { hrtime } from 'node:process'
import type { Clock } from 'signalbox/limits'

/** The machine's monotonic clock: the same in all threads and processes. */
export const realClock: Clock = {
  now() {
    const [seconds, nanoseconds] = hrtime()
    return seconds * 1e3 + nanoseconds * 1e-6
  },
  after(delay, task, keepAlive) {
    const timer = setTimeout(task, Math.max(delay, 0))
    if (!keepAlive) timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

/** Time for which the wall clock is read, in milliseconds: long enough to see it advance by a millisecond. */
const WATCHED = 3

/** Returns milliseconds since 1970 minus the time of {@link realClock}. */
export function wallOffset(): number {
  const end = realClock.now() + WATCHED
  let offset = -Infinity
  // Reads at least once, even if this thread does not get the processor during that time.
  do {
    offset = Math.max(offset, Date.now() - realClock.now())
  } while (realClock.now() < end)
  return offset
}
