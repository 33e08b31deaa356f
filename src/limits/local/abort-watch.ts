import { onAbort } from '../../abort-task.js'
import type { Clock, Timer } from '../../clock.js'
import type { Waiter } from './waiting-line.js'

/** A signal that waiters have. */
interface Watched {
  readonly waiters: Set<Waiter>
  readonly letGo: () => void
  /** Keeps the process alive: not every signal does. */
  readonly alive: Timer
}

/** The waiters of each signal, with one listener for all of them. The process stays alive for them. */
export class AbortWatch {
  readonly #clock: Clock
  readonly #bySignal = new Map<AbortSignal, Watched>()
  readonly #aborted: (waiter: Waiter, signal: AbortSignal) => void

  /** @param aborted called for each waiter of a signal that aborts, in the order in which they came. */
  constructor(clock: Clock, aborted: (waiter: Waiter, signal: AbortSignal) => void) {
    this.#clock = clock
    this.#aborted = aborted
  }

  add(waiter: Waiter, signal: AbortSignal): void {
    let watch = this.#bySignal.get(signal)
    if (!watch) {
      const waiters = new Set<Waiter>()
      const letGo = onAbort(signal, () => {
        for (const each of waiters) this.#aborted(each, signal)
      })
      watch = { waiters, letGo, alive: this.#clock.after(Infinity, () => undefined, true) }
      this.#bySignal.set(signal, watch)
    }
    watch.waiters.add(waiter)
  }

  remove(waiter: Waiter, signal: AbortSignal): void {
    const { waiters, letGo, alive } = this.#bySignal.get(signal)!
    waiters.delete(waiter)
    if (waiters.size > 0) return
    this.#bySignal.delete(signal)
    alive.cancel()
    letGo()
  }
}
