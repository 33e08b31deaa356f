import type { Message, NumberedMessage } from '../messages/message.js'
import type { Kill, PlannedKill } from './kill-plan.js'
import type { WorkerProcess } from './worker-process.js'

/** Maximum number of taken messages at the front of the array before they are cut off. */
const MAX_TAKEN = 4096

/** A worker: its current process and its messages. */
export class Slot {
  /** The worker's number, counted from 1. */
  readonly number: number
  process: WorkerProcess | undefined
  /** The session of the process; undefined until it has opened its box. */
  session: string | undefined
  /** Whether the process accepts messages. */
  ready = false
  /** Whether the process should finish and exit. */
  draining = false
  plannedKill: PlannedKill | undefined
  /** The kill that was executed, until its process is gone. */
  killed: Kill | undefined
  /** Number of messages done, by all its processes. */
  done = 0
  replaced = 0
  /** The peak memory of its last process in bytes; undefined until that process has drained. */
  peakMemory: number | undefined
  /** The reason of the last failure that a process of it reported. */
  lastFailure: string | undefined
  /** Number of its processes that died by themselves since the last acknowledgement. */
  deathsInARow = 0
  /**
   * Messages that were delivered again, by sequence number, with the kill of their process; undefined if it died by
   * itself.
   */
  readonly redelivered = new Map<number, Kill | undefined>()
  readonly #inFlight = new Map<number, Message>()
  #waiting: NumberedMessage[] = []
  #taken = 0

  constructor(number: number) {
    this.number = number
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  get waiting(): number {
    return this.#waiting.length - this.#taken
  }

  add(numbered: NumberedMessage): void {
    this.#waiting.push(numbered)
  }

  /** Takes the next messages, at most `most`. They are then in flight. */
  take(most: number): readonly NumberedMessage[] {
    const batch = this.#waiting.slice(this.#taken, this.#taken + most)
    this.#taken += batch.length
    // Cuts off taken messages only sometimes, because that copies all waiting messages.
    if (this.#taken === this.#waiting.length || this.#taken > MAX_TAKEN) {
      this.#waiting = this.#waiting.slice(this.#taken)
      this.#taken = 0
    }
    for (const { sequence, message } of batch) this.#inFlight.set(sequence, message)
    return batch
  }

  /** Records that a message in flight is done, and returns it; undefined if it is not in flight. */
  settle(sequence: number): Message | undefined {
    const message = this.#inFlight.get(sequence)
    if (!message) return undefined
    this.#inFlight.delete(sequence)
    this.done++
    this.deathsInARow = 0
    return message
  }

  /** Puts the messages in flight back before the waiting ones, in order, and returns their sequence numbers. */
  takeBack(): readonly number[] {
    const back = Array.from(this.#inFlight, ([sequence, message]) => ({ sequence, message }))
    this.#inFlight.clear()
    this.#waiting = [...back, ...this.#waiting.slice(this.#taken)]
    this.#taken = 0
    return back.map(({ sequence }) => sequence)
  }
}
