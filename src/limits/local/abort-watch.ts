import type { Clock, Timer } from '../../clock.js'
import type { Waiter } from './waiting-line.js'

/** A signal with which callers wait. */
interface Watched {
  readonly waiters: Set<Waiter>
  readonly listener: () => void
  /** Keeps the process alive, which not every signal does. */
  readonly alive: Timer
}

/** One listener for each signal, however many callers wait with it. The process stays alive for them. */
export class AbortWatch {
  readonly #clock: Clock
  readonly #bySignal = new Map<AbortSignal, Watched>()
  readonly #aborted: (waiter: Waiter, signal: AbortSignal) => void

  /** @param aborted called for each waiter whose signal aborts, in the order in which they came. */
  constructor(clock: Clock, aborted: (waiter: Waiter, signal: AbortSignal) => void) {
    this.#clock = clock
    this.#aborted = aborted
  }

  add(waiter: Waiter, signal: AbortSignal): void {
    let watch = this.#bySignal.get(signal)
    if (!watch) {
      const waiters = new Set<Waiter>()
      const listener = (): void => {
        for (const each of waiters) this.#aborted(each, signal)
      }
      watch = { waiters, listener, alive: this.#clock.after(Infinity, () => undefined, true) }
      this.#bySignal.set(signal, watch)
      signal.addEventListener('abort', listener)
    }
    watch.waiters.add(waiter)
  }

  remove(waiter: Waiter, signal: AbortSignal): void {
    const { waiters, listener, alive } = this.#bySignal.get(signal)!
    waiters.delete(waiter)
    if (waiters.size > 0) return
    this.#bySignal.delete(signal)
    alive.cancel()
    signal.removeEventListener('abort', listener)
  }
}
