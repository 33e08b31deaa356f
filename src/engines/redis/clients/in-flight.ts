import type { Clock } from '../../../base/clock.js'
import { runtimeTimers } from '../../../base/runtime-timers.js'

/** What is notified about the commands that wait. */
export interface InFlightListener {
  /** The first of several begins to wait. */
  busy(): void
  /** None waits any more. */
  idle(): void
  /** One was not answered in time. Returns what it is rejected with. */
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

  /** How many wait. */
  get size(): number {
    return this.#size
  }

  /**
   * Settles as the answer does, or rejects when it is late.
   * @param failed what to reject with when the answer is rejected
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
      // A process that was stopped finds its timers due before it reads what came meanwhile: that is read first.
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
