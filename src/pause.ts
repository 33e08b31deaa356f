import { onAbort } from './abort-task.js'
import type { Clock } from './clock.js'

/** Waits so many milliseconds, or until the signal aborts. The process stays alive meanwhile. */
export function pause(length: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  if (length <= 0 || signal?.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const letGo = signal && onAbort(signal, () => end())
    const timer = clock.after(length, () => end(), true)
    const end = (): void => {
      timer.cancel()
      letGo?.()
      resolve()
    }
  })
}
