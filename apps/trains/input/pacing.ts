import type { Clock } from '../clock.js'
import type { TimedMessage } from './source.js'

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
      // The times of the timetable are seconds.
      const due = start + ((time - firstTime) * 1000) / speed
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
