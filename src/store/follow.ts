import { onAbort } from '../base/abort-task.js'
import type { Clock } from '../base/clock.js'
import { isOutage } from '../core/health.js'
import { checkSignal } from '../base/options.js'
import type { OnChange, Watching } from '../core/watchers.js'

/** The value of a key, and the version of its last change. */
export interface Found<T> {
  readonly value: T
  readonly version: number
}

/**
 * Yields the value now and after each change, until the loop ends or the signal aborts. The process stays alive while
 * the caller waits for a change.
 * @param watch calls its task after each change
 * @throws what `watch` and `read` reject with. After the first value, a read that does not reach the engine is retried.
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
        // The connection of the engine does not keep the process alive, but a caller that waits must.
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
      // One read may have seen several changes that were reported one by one.
      if (last !== before) yield found.value
    }
  } finally {
    watching.stop()
    letGo?.()
  }
}
