import type { Message, NumberedMessage } from '../messages/message.js'
import type { Kill, PlannedKill } from './kill-plan.js'
import type { WorkerProcess } from './worker-process.js'

/** How many messages that were taken may stand before those that wait. */
const MOST_TAKEN = 4096

/** One of the workers: the process that is it now, and the messages that are its own. */
export class Slot {
  /** The worker's number, counted from 1. */
  readonly number: number
  process: WorkerProcess | undefined
  /** The session of the process; undefined until it has opened its box. */
  session: string | undefined
  /** Whether the process takes messages. */
  ready = false
  /** Whether the process was asked to finish. */
  draining = false
  /** The kill that this worker was chosen for. */
  doomed: PlannedKill | undefined
  /** The kill that was executed, until its process is gone. */
  killed: Kill | undefined
  /** Messages that are done, of all processes that were this worker. */
  done = 0
  /** How often a process of it was replaced. */
  replaced = 0
  /** The most memory that its last process used: bytes; undefined until that has done all its work. */
  peakMemory: number | undefined
  /** Why a process of it could not continue, as it said last. */
  lastFailure: string | undefined
  /** Processes that have died by themselves since the last acknowledgement. */
  deathsInARow = 0
  /** The kills after which messages were delivered again, by message. */
  readonly redelivered = new Map<number, Kill>()
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

  /** The next messages, `most` at most; they are in flight from now on. */
  take(most: number): readonly NumberedMessage[] {
    const batch = this.#waiting.slice(this.#taken, this.#taken + most)
    this.#taken += batch.length
    // What was taken is cut off now and then: each time would cost as much as all that still waits.
    if (this.#taken === this.#waiting.length || this.#taken > MOST_TAKEN) {
      this.#waiting = this.#waiting.slice(this.#taken)
      this.#taken = 0
    }
    for (const { sequence, message } of batch) this.#inFlight.set(sequence, message)
    return batch
  }

  /** Records that a message in flight is done, and returns it; undefined when it is not in flight. */
  settle(sequence: number): Message | undefined {
    const message = this.#inFlight.get(sequence)
    if (!message) return undefined
    this.#inFlight.delete(sequence)
    this.done++
    this.deathsInARow = 0
    return message
  }

  /** Puts what is in flight back before all that waits, in its order, and gives its numbers. */
  takeBack(): readonly number[] {
    const back = Array.from(this.#inFlight, ([sequence, message]) => ({ sequence, message }))
    this.#inFlight.clear()
    this.#waiting = [...back, ...this.#waiting.slice(this.#taken)]
    this.#taken = 0
    return back.map(({ sequence }) => sequence)
  }
}
