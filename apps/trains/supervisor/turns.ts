import type { Slot } from './slot.js'

/** Number of messages after which a turn ends if other workers wait for one. */
const TURN = 1024

/**
 * Limits the number of workers that receive messages at the same time. More workers than processors would interrupt
 * each other in the middle of transactions, while others wait for their locks. After its turn, a worker goes to the end
 * of the queue.
 */
export class Turns {
  readonly #atOnce: number
  /** The workers whose turn it is, with the number of messages sent to each in this turn. */
  readonly #sent = new Map<Slot, number>()
  /** The workers that wait for a turn, the longest-waiting first. */
  readonly #queue = new Set<Slot>()

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Ends finished turns and begins others. Returns the workers whose turn it is. */
  look(slots: readonly Slot[]): readonly Slot[] {
    for (const slot of slots) {
      const takes = slot.ready && !slot.killed
      if (!takes || (slot.inFlight === 0 && this.#isOver(slot))) this.#sent.delete(slot)
      if (!takes) this.#queue.delete(slot)
      else if (slot.waiting > 0 && !this.#sent.has(slot)) this.#queue.add(slot)
    }
    for (const slot of this.#queue) {
      if (this.#sent.size >= this.#atOnce) break
      this.#queue.delete(slot)
      this.#sent.set(slot, 0)
    }
    return [...this.#sent.keys()]
  }

  /** Whether a worker may receive more messages in its turn. */
  maySend(slot: Slot): boolean {
    return this.#queue.size === 0 || this.#sent.get(slot)! < TURN
  }

  sent(slot: Slot, messages: number): void {
    this.#sent.set(slot, this.#sent.get(slot)! + messages)
  }

  #isOver(slot: Slot): boolean {
    return slot.waiting === 0 || !this.maySend(slot)
  }
}
