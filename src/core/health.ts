import { channels, type BoxEvent, type BoxStateEvent } from '../base/diagnostics.js'
import { IndeterminateError, UnavailableError } from '../base/errors.js'

/** The state of a box, as the engine's answers show it. */
export interface BoxState {
  /**
   * `ready`: the engine answered the last operation. `reconnecting`: it did not. `closed`: the box was closed, or the
   * engine has ended its session.
   */
  readonly status: BoxStateEvent['status']
  readonly since: Date
  /** The error of the last operation, or what ended the session; undefined for a box that is ready. */
  readonly reason: Error | undefined
}

export class Health {
  readonly #box: BoxEvent
  readonly #ping: () => Promise<unknown>
  #isPinging = false
  #state: BoxState = { status: 'ready', since: new Date(), reason: undefined }
  readonly #answered = (): void => {
    if (this.#state.status === 'reconnecting') this.become('ready')
  }
  readonly #failed = (error: unknown): void => {
    if (!isOutage(error)) return this.#answered()
    if (this.#state.status !== 'ready') return
    this.become('reconnecting', error)
  }

  /** @param ping sends an operation, whose answer is also passed to {@link watch}. */
  constructor(box: BoxEvent, ping: () => Promise<unknown>) {
    this.#box = box
    this.#ping = ping
  }

  /** The state after the last answer. Reading it while it is `reconnecting` sends a ping, whose answer updates it. */
  get state(): BoxState {
    if (this.#state.status === 'reconnecting' && !this.#isPinging) {
      this.#isPinging = true
      void this.#ping()
        .catch(() => undefined)
        .finally(() => (this.#isPinging = false))
    }
    return this.#state
  }

  watch(answer: Promise<unknown>): void {
    void answer.then(this.#answered, this.#failed)
  }

  become(status: BoxState['status'], reason?: Error): void {
    this.#state = { status, since: new Date(), reason }
    if (channels.boxState.hasSubscribers)
      channels.boxState.publish({ ...this.#box, status, reason } satisfies BoxStateEvent)
  }
}

/** Whether an error means that the engine is out of reach. An error that names a key is about that key only. */
export function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  const isOfEngine = error instanceof UnavailableError || error instanceof IndeterminateError
  return isOfEngine && error.key === undefined
}
