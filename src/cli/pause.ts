import { onAbort } from '../abort-task.js'
import { systemClock } from '../clock.js'

/** Waits so many milliseconds, or until the signal aborts. */
export function pause(length: number, signal: AbortSignal): Promise<void> {
  if (length <= 0 || signal.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const letGo = onAbort(signal, () => {
      timer.cancel()
      resolve()
    })
    const timer = systemClock.after(
      length,
      () => {
        letGo()
        resolve()
      },
      true,
    )
  })
}
