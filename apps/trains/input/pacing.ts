import type { Clock } from '../clock.js'
import type { TimedMessage } from './source.js'

/** Returns when a message is due: `time` and `firstTime` are seconds of the timetable, the others milliseconds. */
function dueAt(start: number, firstTime: number, time: number, speed: number): number {
  return start + ((time - firstTime) * 1000) / speed
}

/**
 * Yields each message when it is due, `speed` times as fast as the timetable. The first message is due at once. Ends
 * early if `signal` aborts.
 */
export async function* paced(
  batches: AsyncIterable<readonly TimedMessage[]>,
  speed: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<readonly TimedMessage[]> {
  const start = clock.now()
  let firstTime: number | undefined
  for await (const batch of batches) {
    let begin = 0
    for (const [index, { time = 0 }] of batch.entries()) {
      firstTime ??= time
      const due = dueAt(start, firstTime, time, speed)
      if (due <= clock.now()) continue
      if (index > begin) yield batch.slice(begin, index)
      begin = index
      // A timer may fire a little early.
      while (clock.now() < due && !signal.aborted) await clock.sleep(due - clock.now(), signal)
      if (signal.aborted) return
    }
    yield batch.slice(begin)
  }
}
