import { onAbort } from '../abort-task.js'
import type { Clock } from '../clock.js'
import { isOutage } from '../core/health.js'
import { checkSignal } from '../options.js'
import type { OnChange, Watching } from '../core/watchers.js'

/** What is found under a key, and the version of its last change. */
export interface Found<T> {
  readonly value: T
  readonly version: number
}

/**
 * Yields what is found now and after each change, until the loop is left or the signal aborts. The process stays alive
 * while the next change is awaited.
 * @param watch has a task called after each change
 * @throws what `watch` and `read` reject with. Once something was found, a read that fails because the engine can't be
 * reached is made again when it can.
 */
export async function* follow<T>(
  watch: (task: OnChange) => Promise<Watching>,
  read: () => Promise<Found<T>>,
  clock: Clock,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, void> {
  checkSignal(signal)
  let isChanged = true
  let last: number | undefined
  let notify = (): void => undefined
  const touch = (version?: number): void => {
    if (version !== undefined && version === last) return
    isChanged = true
    notify()
  }
  const watching = await watch(touch)
  const letGo = signal && onAbort(signal, () => touch())
  try {
    while (!signal?.aborted) {
      if (!isChanged) {
        // An engine that listens is no reason for a process to stay alive; a caller that waits is.
        const alive = clock.after(Infinity, () => undefined, true)
        await new Promise<void>(resolve => (notify = resolve))
        alive.cancel()
      }
      isChanged = false
      if (signal?.aborted) return
      let found: Found<T>
      try {
        found = await read()
      } catch (error) {
        if (last !== undefined && isOutage(error) && watching.readAgain()) continue
        throw error
      }
      const before = last
      last = found.version
      // Several changes may have been reported one by one and read as one.
      if (last !== before) yield found.value
    }
  } finally {
    watching.stop()
    letGo?.()
  }
}
