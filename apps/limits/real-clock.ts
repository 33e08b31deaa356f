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

/** How long the wall clock is watched, so that one of its steps of a millisecond is seen. */
const WATCHED = 3

/** Milliseconds since 1970 less the clock above. */
export function wallOffset(): number {
  const end = realClock.now() + WATCHED
  let offset = -Infinity
  // At least once, however long this thread is kept from the processor meanwhile.
  do {
    offset = Math.max(offset, Date.now() - realClock.now())
  } while (realClock.now() < end)
  return offset
}
