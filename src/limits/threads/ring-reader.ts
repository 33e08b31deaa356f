import type { SharedRing } from './shared-ring.js'
import { isBefore } from './thread-turns.js'

/** Grants that still count. */
interface Recent {
  /** Their number, from the head back to the oldest, including returned permits between them. */
  readonly count: number
  /** The time of the oldest; the current time if there is none. */
  readonly oldest: number
}

/** Reads the ring for one thread, at a head and a time that the thread has read in this order. */
export class RingReader {
  readonly ring: SharedRing
  readonly #patience: number
  /** The head at which an unwritten grant was found, and the time since which it is unwritten. */
  #unwritten: { readonly before: number; readonly since: number } | undefined

  /**
   * @param patience time after which this thread writes a grant that another one has claimed, in milliseconds.
   */
  constructor(ring: SharedRing, patience: number) {
    this.ring = ring
    this.#patience = patience
  }

  /** Returns the clock time of a grant. A grant that is not written yet counts as granted now. */
  timeOf(grant: number, head: number, now: number): number {
    return this.ring.timeOf(grant) ?? this.#missing(grant, head, now)
  }

  /** The grants that still count, among the last `limit`. */
  recent(head: number, limit: number, now: number, counts: (time: number) => boolean): Recent {
    let count = 0
    let oldest = now
    for (let back = 1; back <= limit; back++) {
      const grant = (head - back) | 0
      const time = this.ring.timeOf(grant) ?? now
      if (counts(time)) {
        count = back
        oldest = Math.min(oldest, time)
      } else if (!this.ring.isFree(grant)) break
    }
    return { count, oldest }
  }

  #missing(grant: number, head: number, now: number): number {
    const known = this.#unwritten
    if (!known || now - known.since >= this.#patience) {
      this.#unwritten = { before: head, since: now }
      // All grants that were claimed before this head have had that time to be written.
      if (known)
        for (let late = grant; isBefore(late, known.before); late = (late + 1) | 0) this.ring.write(late, now)
    }
    return now
  }
}
