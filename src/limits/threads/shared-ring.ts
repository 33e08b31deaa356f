import {
  HIGH,
  HIGH_NUMBER_BITS,
  HIGH_NUMBER_MASK,
  LOW,
  numberOf,
  taggedWord,
  tagOf,
  TAGS,
} from './tagged-word.js'
import { COARSE, isBefore } from './thread-turns.js'

/** Grants that still count. */
interface Recent {
  /** Their number, from the head back to the oldest, including returned permits between them. */
  readonly count: number
  /** The time of the oldest; the current time if there is none. */
  readonly oldest: number
}

/**
 * The times of the last grants of several threads, in a ring in shared memory. Grants are numbered. A thread claims the
 * next numbers by advancing the head with compare-and-set. It then writes its times into their slots.
 *
 * A slot is one word, written by compare-and-set: the lap of the ring in which it was written, and a time. While a slot
 * still has the previous lap, its thread has claimed it and not written it. The time of the call is then unknown, so
 * the grant counts as used now. A thread that never writes (it has ended or is blocked) must not stop the others. So
 * after a while, another thread writes the current time in its place. If the first thread continues, it finds that and
 * has no permit.
 *
 * The limit holds with many threads, of which any may be stopped anywhere. A claim reads the head, then the clock.
 * It checks that by this reading the grant `limit` before it is a window old, and advances the head. Each of these
 * readings is not before the reading of the previous claim, because the head was advanced in between. The time that is
 * written was read after the claim. So of two used grants that are `limit` or more apart, the time of the later one is
 * at least a window after that of the earlier one.
 *
 * A refund frees a slot and moves earlier times up, so that the free slot becomes the next one that is checked. A time
 * is written into its new slot before its old one is freed, so it is never missing. It may be counted twice for a
 * while, or until it is a window old if three threads move times at once. If two threads move the same time, the one
 * that finds the old slot already free removes its new copy. Times only move up, so a thread that reads several slots
 * from the first to the last can't miss one that moves. All times that are less than a window old stay within the
 * `limit` slots before the head.
 */
export class SharedRing {
  readonly #control: Int32Array
  readonly #halves: Int32Array
  readonly #slots: BigInt64Array
  readonly #capacity: number
  readonly #lapShift: number
  /** The clock time from which stored times are counted, in milliseconds: on the system's monotonic clock. */
  readonly origin: number

  readonly #patience: number
  /** The head at which an unwritten grant was found, and the time since which it is unwritten. */
  #unwritten: { readonly before: number; readonly since: number } | undefined

  /**
   * @param memory made by `SharedRing.memory`, of this or another thread.
   * @param patience time after which this thread writes a grant that another one has claimed, in milliseconds.
   */
  constructor(memory: SharedArrayBuffer, patience: number) {
    this.#patience = patience
    this.#control = new Int32Array(memory, 0, CONTROL_WORDS)
    this.#capacity = this.#control[CAPACITY]!
    this.#lapShift = Math.log2(this.#capacity)
    this.origin = new Float64Array(memory, ORIGIN_BYTES, 1)[0]!
    this.#slots = new BigInt64Array(memory, SLOT_BYTES, this.#capacity)
    this.#halves = new Int32Array(memory, SLOT_BYTES, 2 * this.#capacity)
  }

  /**
   * @param limit the greatest limit that uses the ring.
   * @param origin a clock time in the past. Permits that were granted then are available again.
   */
  static memory(limit: number, origin: number): SharedArrayBuffer {
    const capacity = capacityFor(limit)
    const memory = new SharedArrayBuffer(SLOT_BYTES + 8 * capacity)
    new Int32Array(memory)[CAPACITY] = capacity
    new Float64Array(memory, ORIGIN_BYTES, 1)[0] = origin
    // All slots begin as if they were written in the lap before the first, at the origin.
    new BigInt64Array(memory, SLOT_BYTES, capacity).fill(taggedWord(TAGS - 1, 0))
    return memory
  }

  /** Whether this memory was made by `SharedRing.memory` for this limit. */
  static isOne(memory: SharedArrayBuffer, limit: number): boolean {
    const capacity = capacityFor(limit)
    return memory.byteLength === SLOT_BYTES + 8 * capacity && new Int32Array(memory)[CAPACITY] === capacity
  }

  /** Converts a clock time to a stamp, rounded up: parts of a millisecond since the origin. */
  ticks(time: number): number {
    return Math.ceil((time - this.origin) * TICKS)
  }

  /** Converts a stamp to a clock time. */
  timeAt(ticks: number): number {
    return this.origin + ticks / TICKS
  }

  /** The clock time before which no permit is granted. */
  get pausedUntil(): number {
    return this.origin + Atomics.load(this.#control, PAUSED) / COARSE
  }

  /**
   * Pauses all grants; the latest of several pauses counts. @param time clock time, rounded up to a sixteenth of a
   * second.
   */
  pauseUntil(time: number): void {
    this.#movePause(Math.min(Math.ceil((time - this.origin) * COARSE), 2 ** 31 - 1), 1)
  }

  /** Ends a pause. @param now clock time. */
  resume(now: number): void {
    this.#movePause(Math.floor((now - this.origin) * COARSE), -1)
  }

  /** The number of the next grant. */
  get head(): number {
    return Atomics.load(this.#control, HEAD)
  }

  /** Returns a clock time not after the one that was stamped; undefined if the grant has not been written yet. */
  timeOf(grant: number): number | undefined {
    const place = 2 * (grant & (this.#capacity - 1))
    const high = Atomics.load(this.#halves, place + HIGH)
    if (high >>> HIGH_NUMBER_BITS !== this.#lapOf(grant)) return undefined
    const low = Atomics.load(this.#halves, place + LOW)
    // If the slot was overwritten between the two reads, the head has moved, and a claim will fail.
    return this.timeAt((high & HIGH_NUMBER_MASK) * 2 ** 32 + (low >>> 0))
  }

  /**
   * Returns the clock time of a grant, at a head and a time that this thread has read in this order. A grant that is
   * not written yet counts as granted now.
   */
  timeAtHead(grant: number, head: number, now: number): number {
    return this.timeOf(grant) ?? this.#missing(grant, head, now)
  }

  /** The grants that still count, among the last `limit`. */
  recent(head: number, limit: number, now: number, counts: (time: number) => boolean): Recent {
    let count = 0
    let oldest = now
    for (let back = 1; back <= limit; back++) {
      const grant = (head - back) | 0
      const time = this.timeOf(grant) ?? now
      if (counts(time)) {
        count = back
        oldest = Math.min(oldest, time)
      } else if (!this.isFree(grant)) break
    }
    return { count, oldest }
  }

  /** Claims `n` grants from `head` on. The caller must stamp them at once. Returns whether it has got them. */
  claim(head: number, n: number): boolean {
    return Atomics.compareExchange(this.#control, HEAD, head, (head + n) | 0) === head
  }

  /** Writes the time of claimed grants. @returns false if another thread has written one of them: the claim is void. */
  stamp(head: number, n: number, time: number): boolean {
    let ours = true
    for (let index = 0; index < n; index++) ours = this.write((head + index) | 0, time) && ours
    // Slots above that were refunded could not be filled while a grant below them was not written.
    const above = (head + n) | 0
    if (above !== this.head && this.isFree(above)) this.#moveUp(above, FREE)
    return ours
  }

  /** Writes the time of a grant, unless it was written before. */
  write(grant: number, time: number): boolean {
    const slot = grant & (this.#capacity - 1)
    const lap = this.#lapOf(grant)
    while (true) {
      const before = Atomics.load(this.#slots, slot)
      // Read after the whole word. Laps only increase: if this half has the previous lap, the whole word had it, too,
      // or was overwritten, and the exchange fails.
      const high = Atomics.load(this.#halves, 2 * slot + HIGH)
      if (high >>> HIGH_NUMBER_BITS !== ((lap - 1) & (TAGS - 1))) return false
      // A time that a refund moves meanwhile also has the previous lap.
      if (Atomics.compareExchange(this.#slots, slot, before, taggedWord(lap, this.ticks(time))) === before)
        return true
    }
  }

  /** Whether a grant was refunded, so that its slot does not count. */
  isFree(grant: number): boolean {
    return this.#ticksOf(grant) === FREE
  }

  /**
   * Returns `n` unused grants, and moves their free slots before those in use.
   * @param grant the first of them, as it was claimed. If other refunds have moved them, they are found after it.
   * @param time with which they were stamped.
   * @param old grants that were stamped before this time no longer count.
   */
  refund(grant: number, n: number, time: number, old: number): void {
    const ticks = this.ticks(time)
    let left = n
    for (let step = 0; step < MAX_MOVED; step++) {
      const next = (grant + step) | 0
      // Other threads may claim more grants meanwhile, and move up the one that is searched.
      if (next === this.head) return
      if (this.#ticksOf(next) !== ticks || !this.#exchange(next, ticks, FREE)) continue
      left--
      if (left === 0) return this.#moveUp(next, this.ticks(old))
    }
  }

  /**
   * Moves times up into free slots: into this one, and into those between it and the head, which may have been refunded
   * while a grant between them was not written. @param old in ticks.
   */
  #moveUp(free: number, old: number): void {
    const { head } = this
    const above = (head - 1 - free) | 0
    const first = above < MAX_MOVED / 2 ? (head - 1) | 0 : free
    let place = first
    for (let step = 0; step <= MAX_MOVED; step++) {
      const grant = (first - step) | 0
      const ticks = this.#ticksOf(grant)
      if (ticks === FREE) continue
      if (ticks === undefined || ticks < old) {
        // Further down, no grant counts any more, so moving them is useless.
        if (!isBefore(free, grant)) return
        // Further up, a grant may not be written yet, and no time moves past such a grant.
        place = (grant - 1) | 0
        continue
      }
      place = this.#writeIfFree(place, grant, ticks)
      const isSurplus = place !== grant && !this.#exchange(grant, ticks, FREE)
      if (isSurplus) this.#exchange(place, ticks, FREE)
    }
  }

  /** Writes ticks into the first free slot from `place` down, and returns it; `grant` if none above it is free. */
  #writeIfFree(place: number, grant: number, ticks: number): number {
    let slot = place
    for (;;) {
      while (slot !== grant && !this.isFree(slot)) slot = (slot - 1) | 0
      if (slot === grant || this.#exchange(slot, FREE, ticks)) return slot
    }
  }

  /** Moves the end of the pause to a later time, or with a negative direction to an earlier one. */
  #movePause(end: number, direction: 1 | -1): void {
    let known = Atomics.load(this.#control, PAUSED)
    while (direction * (end - known) > 0) {
      const found = Atomics.compareExchange(this.#control, PAUSED, known, end)
      if (found === known) return
      known = found
    }
  }

  #missing(grant: number, head: number, now: number): number {
    const known = this.#unwritten
    if (!known || now - known.since >= this.#patience) {
      this.#unwritten = { before: head, since: now }
      // All grants that were claimed before this head have had that time to be written.
      if (known)
        for (let late = grant; isBefore(late, known.before); late = (late + 1) | 0) this.write(late, now)
    }
    return now
  }

  /** Returns the ticks written for a grant; undefined if none are written, or if they are overwritten. */
  #ticksOf(grant: number): number | undefined {
    const word = Atomics.load(this.#slots, grant & (this.#capacity - 1))
    return tagOf(word) === this.#lapOf(grant) ? numberOf(word) : undefined
  }

  #exchange(grant: number, before: number, after: number): boolean {
    const slot = grant & (this.#capacity - 1)
    const lap = this.#lapOf(grant)
    const expected = taggedWord(lap, before)
    return Atomics.compareExchange(this.#slots, slot, expected, taggedWord(lap, after)) === expected
  }

  #lapOf(grant: number): number {
    return (grant >>> this.#lapShift) & (TAGS - 1)
  }
}

function capacityFor(limit: number): number {
  return 2 ** Math.max(Math.ceil(Math.log2(limit)), 1)
}

/** Words at the beginning. */
const HEAD = 0
const CAPACITY = 1
const PAUSED = 2
const CONTROL_WORDS = 4
const ORIGIN_BYTES = 16
const SLOT_BYTES = 64

/** Parts of a millisecond in a time: 53 bits last for seventeen years. */
const TICKS = 16_384
/** The ticks of a grant that was returned: a time before any stamp of a thread. */
const FREE = 1
/** Maximum number of slots that one refund checks, because it blocks the event loop. */
const MAX_MOVED = 10_000
