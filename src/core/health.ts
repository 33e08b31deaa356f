import { channels, type BoxEvent, type BoxStateEvent } from '../diagnostics.js'
import { IndeterminateError, UnavailableError } from '../errors.js'

/** What is known of a box's engine. */
export interface BoxState {
  /**
   * `ready`: the engine answered when it was asked last. `reconnecting`: it did not. `closed`: the box was closed, or
   * the engine has ended its session.
   */
  readonly status: BoxStateEvent['status']
  readonly since: Date
  /** What the engine failed with, or what ended the session; undefined for a box that is ready. */
  readonly reason: Error | undefined
}

/** Keeps the state of an engine, as its answers show it, and publishes its changes. */
export class Health {
  readonly #box: BoxEvent
  readonly #ask: () => Promise<unknown>
  #isAsked = false
  #state: BoxState = { status: 'ready', since: new Date(), reason: undefined }
  readonly #answered = (): void => {
    if (this.#state.status === 'reconnecting') this.#become('ready', undefined)
  }
  readonly #failed = (error: unknown): void => {
    if (!isOutage(error)) return this.#answered()
    if (this.#state.status !== 'ready') return
    this.#become('reconnecting', error)
  }

  /** @param ask asks the engine for an answer of any kind, which is also given to {@link watch}. */
  constructor(box: BoxEvent, ask: () => Promise<unknown>) {
    this.#box = box
    this.#ask = ask
  }

  /** The box has joined its engine. */
  begin(): void {
    this.#become('ready', undefined)
  }

  /** As of the last answer. After a failure the engine is asked again, so that a reader finds out when it is back. */
  get state(): BoxState {
    if (this.#state.status === 'reconnecting' && !this.#isAsked) {
      this.#isAsked = true
      void this.#ask()
        .catch(() => undefined)
        .finally(() => (this.#isAsked = false))
    }
    return this.#state
  }

  /** Learns from an answer. */
  watch(answer: Promise<unknown>): void {
    void answer.then(this.#answered, this.#failed)
  }

  end(cause: Error): void {
    this.#become('closed', cause)
  }

  #become(status: BoxState['status'], reason: Error | undefined): void {
    this.#state = { status, since: new Date(), reason }
    if (channels.boxState.hasSubscribers)
      channels.boxState.publish({ ...this.#box, status, reason } satisfies BoxStateEvent)
  }
}

/** Whether an engine can't be reached. An error that names a key means only that this key can't be read. */
export function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  const isOfEngine = error instanceof UnavailableError || error instanceof IndeterminateError
  return isOfEngine && error.key === undefined
}
