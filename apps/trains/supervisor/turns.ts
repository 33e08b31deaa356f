import type { Slot } from './slot.js'

/** Number of messages after which a turn may end. */
const TURN = 1024

/**
 * Which workers are sent messages: as many at once as there are processors. More of them would take the processors
 * from each other in the middle of a transaction, while others wait for its locks. So each has a turn, does what it was
 * sent, and goes to the end of the line.
 */
export class Turns {
  readonly #atOnce: number
  /** The workers whose turn it is, and how many messages each was sent in it. */
  readonly #sent = new Map<Slot, number>()
  /** Those that have messages and no turn, the longest first. */
  readonly #line = new Set<Slot>()

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Ends turns and begins others. @returns the workers whose turn it is */
  look(slots: readonly Slot[]): readonly Slot[] {
    for (const slot of slots) {
      const takes = slot.ready && !slot.killed
      if (!takes || (slot.inFlight === 0 && this.#isOver(slot))) this.#sent.delete(slot)
      if (!takes) this.#line.delete(slot)
      else if (slot.waiting > 0 && !this.#sent.has(slot)) this.#line.add(slot)
    }
    for (const slot of this.#line) {
      if (this.#sent.size >= this.#atOnce) break
      this.#line.delete(slot)
      this.#sent.set(slot, 0)
    }
    return [...this.#sent.keys()]
  }

  /** Whether a worker may be sent more in its turn. */
  maySend(slot: Slot): boolean {
    return this.#line.size === 0 || this.#sent.get(slot)! < TURN
  }

  sent(slot: Slot, messages: number): void {
    this.#sent.set(slot, this.#sent.get(slot)! + messages)
  }

  #isOver(slot: Slot): boolean {
    return slot.waiting === 0 || !this.maySend(slot)
  }
}
