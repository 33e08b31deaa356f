import { onAbort } from './abort-task.js'
import type { Clock } from './clock.js'

/** Waits for this many milliseconds, or until a signal aborts. The process stays alive while it waits. */
export function pause(
  length: number,
  clock: Clock,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<void> {
  if (length <= 0 || signals.some(signal => signal?.aborted)) return Promise.resolve()
  return new Promise(resolve => {
    const letGo = signals.map(signal => signal && onAbort(signal, () => end()))
    const timer = clock.after(length, () => end(), true)
    const end = (): void => {
      timer.cancel()
      for (const each of letGo) each?.()
      resolve()
    }
  })
}
