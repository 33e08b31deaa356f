/** The tasks of each signal, in the order in which they were added. */
const tasks = new WeakMap<AbortSignal, { readonly all: Set<() => void>; readonly listener: () => void }>()

/**
 * Runs a task once when a signal aborts. All tasks of one signal share one listener: services often use one signal for
 * everything, and Node warns of a leak at the eleventh listener.
 * @param task must not throw.
 * @returns a function that removes the task
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
