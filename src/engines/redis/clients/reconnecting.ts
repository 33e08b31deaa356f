import { runtimeTimers } from '../../../base/runtime-timers.js'

/** The attempt to reconnect after a loss, for which calls wait. */
export class Reconnecting {
  #attempt: Promise<void> | undefined

  get now(): Promise<void> | undefined {
    return this.#attempt
  }

  /** @param attempt never rejects. */
  begin(attempt: Promise<void>): void {
    this.#attempt = attempt
    const over = (): void => {
      // The new connection may have been lost by now.
      if (this.#attempt === attempt) this.#attempt = undefined
    }
    // Later calls wait, too, until those that have waited are sent, so that all keep their order.
    void attempt.then(() => runtimeTimers.setImmediate(over))
  }
}
