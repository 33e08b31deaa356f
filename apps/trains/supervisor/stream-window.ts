import type { Message } from '../messages/message.js'

/** Receives, in the order of the stream, each message when it and all before it are done. */
export type OnDone = (message: Message, sequence: number, givenUp: boolean) => void

const PENDING = 0
const APPLIED = 1
const GIVEN_UP = 2

/**
 * The part of the stream that is under way: from the oldest message that is not done to the newest that was read.
 * Messages are done in any order and leave in the order of the stream. It has a fixed size, and while it is full
 * nothing more is read, so one slow message holds back the stream before it can fill the memory.
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

  /** Takes in the next message of the stream; must not be full. */
  add(message: Message): number {
    const place = this.#next % this.#messages.length
    this.#messages[place] = message
    this.#states[place] = PENDING
    return this.#next++
  }

  /** Notes that a message is done. */
  settle(sequence: number, givenUp: boolean): void {
    this.#states[sequence % this.#messages.length] = givenUp ? GIVEN_UP : APPLIED
    while (this.#oldest < this.#next) {
      const place = this.#oldest % this.#messages.length
      if (this.#states[place] === PENDING) return
      const message = this.#messages[place]!
      this.#messages[place] = undefined
      this.#onDone(message, this.#oldest++, this.#states[place] === GIVEN_UP)
    }
  }
}
