import type { Waiter } from './waiting-line.js'

/** One listener for each signal, however many callers wait with it. */
export class AbortWatch {
  readonly #bySignal = new Map<
    AbortSignal,
    { readonly waiters: Set<Waiter>; readonly listener: () => void }
  >()
  readonly #aborted: (waiter: Waiter, signal: AbortSignal) => void

  /** @param aborted called for each waiter whose signal aborts, in the order in which they came. */
  constructor(aborted: (waiter: Waiter, signal: AbortSignal) => void) {
    this.#aborted = aborted
  }

  add(waiter: Waiter, signal: AbortSignal): void {
    let watch = this.#bySignal.get(signal)
    if (!watch) {
      const waiters = new Set<Waiter>()
      const listener = (): void => {
        for (const each of waiters) this.#aborted(each, signal)
      }
      watch = { waiters, listener }
      this.#bySignal.set(signal, watch)
      signal.addEventListener('abort', listener)
    }
    watch.waiters.add(waiter)
  }

  remove(waiter: Waiter, signal: AbortSignal): void {
    const { waiters, listener } = this.#bySignal.get(signal)!
    waiters.delete(waiter)
    if (waiters.size > 0) return
    this.#bySignal.delete(signal)
    signal.removeEventListener('abort', listener)
  }
}
