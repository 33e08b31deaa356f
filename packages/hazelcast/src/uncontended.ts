import type { Clock, Timer } from 'signalbox/engine'

/** The grants of this box whose keys no other request claims, each for as long as its box relies on being notified. */
export class Uncontended {
  readonly #clock: Clock
  readonly #contended: (id: string) => void
  readonly #timers = new Map<string, Timer>()

  /** @param contended is called at the end of that time. */
  constructor(clock: Clock, contended: (id: string) => void) {
    this.#clock = clock
    this.#contended = contended
  }

  /** Watches a grant until {@link end}, or for this many milliseconds. Returns true. */
  begin(id: string, time: number): true {
    this.#timers.get(id)?.cancel()
    this.#timers.set(
      id,
      this.#clock.after(time, () => this.end(id), false),
    )
    return true
  }

  /** Another request has come for a key of the grant, or its time is over. */
  end(id: string): void {
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
    this.#contended(id)
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel()
  }
}
