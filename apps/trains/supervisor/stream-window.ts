import type { Message } from '../messages/message.js'

/** Receives each message, in the order of the stream, when it and all earlier ones are done. */
export type OnDone = (message: Message, sequence: number, deadLettered: boolean) => void

const PENDING = 0
const APPLIED = 1
const DEAD_LETTERED = 2

/**
 * The window of unfinished messages: from the oldest that is not done to the newest that was read. Messages may be done
 * in any order, and leave the window in the order of the stream. While the window is full, its user must not read, so a
 * slow message can't fill the memory.
 */
export class StreamWindow {
  readonly #messages: (Message | undefined)[]
  readonly #states: Uint8Array
  readonly #onDone: OnDone
  #oldest: number
  #next: number

  /** @param first the sequence number of the first message. */
  constructor(size: number, first: number, onDone: OnDone) {
    this.#messages = new Array<Message | undefined>(size).fill(undefined)
    this.#states = new Uint8Array(size)
    this.#onDone = onDone
    this.#oldest = first
    this.#next = first
  }

  get full(): boolean {
    return this.#next - this.#oldest === this.#messages.length
  }

  get empty(): boolean {
    return this.#next === this.#oldest
  }

  /** Adds the next message of the stream and returns its sequence number. The window must not be full. */
  add(message: Message): number {
    const place = this.#next % this.#messages.length
    this.#messages[place] = message
    this.#states[place] = PENDING
    return this.#next++
  }

  settle(sequence: number, deadLettered: boolean): void {
    this.#states[sequence % this.#messages.length] = deadLettered ? DEAD_LETTERED : APPLIED
    while (this.#oldest < this.#next) {
      const place = this.#oldest % this.#messages.length
      if (this.#states[place] === PENDING) return
      const message = this.#messages[place]!
      this.#messages[place] = undefined
      this.#onDone(message, this.#oldest++, this.#states[place] === DEAD_LETTERED)
    }
  }
}
