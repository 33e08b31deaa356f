import type { Clock } from '../../../base/clock.js'
import { runtimeTimers } from '../../../base/runtime-timers.js'

/** Receives the events of {@link InFlight}. */
export interface InFlightListener {
  /** A command begins to wait while no other waits. */
  busy(): void
  /** No command waits any more. */
  idle(): void
  /** A command was not answered in time. Returns its error. */
  late(): unknown
}

/** The commands that wait for their answers. */
export class InFlight {
  readonly #clock: Clock
  readonly #timeout: number
  readonly #listener: InFlightListener
  #size = 0

  /** @param timeout time limit for the reply to a command, in milliseconds */
  constructor(clock: Clock, timeout: number, listener: InFlightListener) {
    this.#clock = clock
    this.#timeout = timeout
    this.#listener = listener
  }

  get size(): number {
    return this.#size
  }

  /**
   * Settles as the answer does, or rejects when it is late.
   * @param failed returns the error when the answer is rejected
   */
  follow<Answer>(answer: Promise<Answer>, failed: (error: unknown) => unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      let isSettled = false
      const settle = (): boolean => {
        if (isSettled) return false
        isSettled = true
        timer.cancel()
        if (--this.#size === 0) this.#listener.idle()
        return true
      }
      const expire = (): void => {
        if (settle()) reject(this.#listener.late())
      }
      // After the process was frozen, the timer is due before the answer that has arrived is read. So the answer is
      // read first.
      const timer = this.#clock.after(this.#timeout, () => runtimeTimers.setImmediate(expire), false)
      if (this.#size++ === 0) this.#listener.busy()
      answer.then(
        value => {
          if (settle()) resolve(value)
        },
        (error: unknown) => {
          if (settle()) reject(failed(error))
        },
      )
    })
  }
}
