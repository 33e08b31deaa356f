/** The tasks of each signal, and the listener that runs them. */
const tasks = new WeakMap<AbortSignal, { readonly all: Set<() => void>; readonly listener: () => void }>()

/**
 * Runs a task once when a signal aborts. All tasks of a signal share one listener: waits often share a signal, and Node
 * warns of a leak at the eleventh listener.
 * @param task must not throw
 * @returns a function that removes the task
 */
export function onAbort(signal: AbortSignal, task: () => void): () => void {
  const { all, listener } = tasks.get(signal) ?? listen(signal)
  all.add(task)
  return () => {
    if (!all.delete(task) || all.size > 0) return
    if (tasks.get(signal)?.all === all) tasks.delete(signal)
    signal.removeEventListener('abort', listener)
  }
}

function listen(signal: AbortSignal): { readonly all: Set<() => void>; readonly listener: () => void } {
  const all = new Set<() => void>()
  const listener = (): void => {
    tasks.delete(signal)
    for (const each of all) each()
  }
  signal.addEventListener('abort', listener, { once: true })
  const listening = { all, listener }
  tasks.set(signal, listening)
  return listening
}
