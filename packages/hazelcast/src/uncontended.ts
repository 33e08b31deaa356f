import type { Clock, Timer } from 'signalbox/engine'

/**
 * The grants of this box whose keys no other request claims. Each is watched for as long as the box relies on being
 * notified.
 */
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

  /** Call when another request has come for a key of the grant. Also runs when its time is over. */
  end(id: string): void {
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
    this.#contended(id)
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel()
  }
}
