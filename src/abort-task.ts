/** What is to be done when each signal aborts, in the order in which it was asked for. */
const tasks = new WeakMap<AbortSignal, { readonly all: Set<() => void>; readonly listener: () => void }>()

/**
 * Does something once when a signal aborts. However many wait with one signal, it has one listener of ours: one signal
 * for all that a service does is usual, and Node would take the eleventh listener for a leak and say so.
 * @param task must not throw.
 * @returns takes the task back
 */
export function onAbort(signal: AbortSignal, task: () => void): () => void {
  const known = tasks.get(signal)
  const all = known?.all ?? new Set()
  if (!known) {
    const listener = (): void => {
      tasks.delete(signal)
      for (const each of all) each()
    }
    tasks.set(signal, { all, listener })
    signal.addEventListener('abort', listener, { once: true })
  }
  all.add(task)
  return () => {
    const current = tasks.get(signal)
    if (!all.delete(task) || all.size > 0 || current?.all !== all) return
    tasks.delete(signal)
    signal.removeEventListener('abort', current.listener)
  }
}
