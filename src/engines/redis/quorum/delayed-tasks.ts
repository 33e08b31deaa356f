import type { Clock } from '../../../clock.js'

/**
 * Runs tasks after a delay that is the same for all of them. Tasks that are due run within one tick, so what they send
 * travels together.
 */
export class DelayedTasks {
  readonly #clock: Clock
  readonly #delay: number
  /** In the order in which they are due. */
  readonly #tasks: { readonly run: () => void; readonly at: number }[] = []

  /** @param delay milliseconds. */
  constructor(clock: Clock, delay: number) {
    this.#clock = clock
    this.#delay = delay
  }

  /** @param run must not throw. */
  add(run: () => void): void {
    this.#tasks.push({ run, at: this.#clock.now() + this.#delay })
    if (this.#tasks.length === 1) this.#setTimer(this.#delay)
  }

  #setTimer(delay: number): void {
    // A caller that waits for an answer has a connection or a timer of its own that keeps the process alive.
    this.#clock.after(delay, () => this.#runDue(), false)
  }

  #runDue(): void {
    const now = this.#clock.now()
    const next = this.#tasks.findIndex(({ at }) => at > now)
    const due = this.#tasks.splice(0, next < 0 ? this.#tasks.length : next)
    const [first] = this.#tasks
    if (first) this.#setTimer(first.at - now)
    for (const { run } of due) run()
  }
}
