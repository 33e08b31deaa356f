import type { Clock } from '../../../clock.js'

interface Call {
  readonly deadline: number
  isSettled: boolean
  readonly reject: (error: unknown) => void
}

/** Who wants to know of the commands that wait. */
export interface InFlightListener {
  /** The first of several begins to wait. */
  busy(): void
  /** None waits any more. */
  idle(): void
  /** One was not answered in time. Returns what those that are late are rejected with. */
  late(): unknown
}

/** The commands that wait for their answers, with one timer for all of them. */
export class InFlight {
  readonly #clock: Clock
  readonly #patience: number
  readonly #listener: InFlightListener
  /** In the order of sending, which is that of the deadlines. */
  #calls: Call[] = []
  #unsettled = 0
  /** Whether the timer is set. */
  #isWatching = false

  /** @param patience until a command has to be answered: milliseconds */
  constructor(clock: Clock, patience: number, listener: InFlightListener) {
    this.#clock = clock
    this.#patience = patience
    this.#listener = listener
  }

  /** How many wait. */
  get size(): number {
    return this.#unsettled
  }

  /**
   * Settles as the answer does, or rejects when it is late.
   * @param failed what to reject with when the answer is rejected
   */
  follow<Answer>(answer: Promise<Answer>, failed: (error: unknown) => unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const call: Call = { deadline: this.#clock.now() + this.#patience, isSettled: false, reject }
      this.#calls.push(call)
      if (this.#unsettled++ === 0) this.#listener.busy()
      if (!this.#isWatching) this.#lookIn(this.#patience)
      answer.then(
        value => {
          if (this.#settle(call)) resolve(value)
        },
        (error: unknown) => {
          if (this.#settle(call)) reject(failed(error))
        },
      )
    })
  }

  #settle(call: Call): boolean {
    if (call.isSettled) return false
    call.isSettled = true
    if (--this.#unsettled === 0) {
      this.#calls = []
      this.#listener.idle()
    }
    return true
  }

  /** Forgets what is settled, and comes back when the oldest of the rest is due. */
  #look(): void {
    this.#calls = this.#calls.filter(call => !call.isSettled)
    const [oldest] = this.#calls
    const now = this.#clock.now()
    if (oldest === undefined) this.#isWatching = false
    else if (oldest.deadline > now) this.#lookIn(oldest.deadline - now)
    // A process that was stopped finds its timers due before it reads what came meanwhile: that is read first.
    else setImmediate(() => this.#reject(now))
  }

  /** Rejects what was due then and is not settled yet. */
  #reject(then: number): void {
    const late = this.#calls.filter(call => !call.isSettled && call.deadline <= then)
    if (late.length > 0) {
      const error = this.#listener.late()
      for (const call of late) if (this.#settle(call)) call.reject(error)
    }
    this.#look()
  }

  #lookIn(delay: number): void {
    this.#isWatching = true
    this.#clock.after(delay, () => this.#look(), false)
  }
}
