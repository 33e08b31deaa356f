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

/**
 * The times of the last grants of several threads, in a ring in shared memory. Grants are numbered. A thread that moves
 * the head on by compare-and-set has claimed the next numbers. It then writes its times into their slots.
 *
 * A slot is one word, written at once by compare-and-set: the lap of the ring in which it was written, and a time.
 * While a slot still shows the lap before, its claimer is between claim and writing. When its call begins is not known,
 * so it counts as used now. A claimer that does not come back to write (its thread was ended or stands still) must not
 * stop the others. So after a while another thread writes the present in its stead. If the claimer comes back, it finds
 * that and has no permit.
 *
 * Why the bound holds, with many threads and any of them stopped anywhere: a claim reads the head, then the clock, then
 * sees that the grant `limit` before it is a window old by that reading, then moves the head. Each of these readings is
 * not before the reading of the claim before it, because the head was moved in between. The time that is written was
 * read after the claim. So of two used grants that are `limit` or more apart, the later one's time is at least a window
 * after the earlier one's.
 *
 * A refund makes a slot free and moves times from before it up, so that the free slot becomes the next one that is
 * looked at. A time is written into its new slot before its old one is made free. So it is missing at no moment. At
 * most it is counted twice for a while, or until it is a window old when three movers get into each other's way. Of two
 * threads that move the same time, the one that finds its old slot free already takes back what it has written. A time
 * only ever moves up, so a thread that looks at several slots from the first to the last can't miss it on its way. All
 * times that are less than a window old stay within the `limit` slots before the head.
 */
export class SharedRing {
  readonly memory: SharedArrayBuffer
  readonly #control: Int32Array
  readonly #halves: Int32Array
  readonly #slots: BigInt64Array
  readonly #capacity: number
  readonly #lapShift: number
  /** The moment from which times count: on the system's monotonic clock, in milliseconds. */
  readonly origin: number

  /** @param memory made by `SharedRing.memory`, of this or another thread. */
  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#control = new Int32Array(memory, 0, CONTROL_WORDS)
    this.#capacity = this.#control[CAPACITY]!
    this.#lapShift = Math.log2(this.#capacity)
    this.origin = new Float64Array(memory, ORIGIN_BYTES, 1)[0]!
    this.#slots = new BigInt64Array(memory, SLOT_BYTES, this.#capacity)
    this.#halves = new Int32Array(memory, SLOT_BYTES, 2 * this.#capacity)
  }

  /**
   * @param limit the greatest that it will have to serve.
   * @param origin a clock time far enough back that a grant of that time has come back.
   */
  static memory(limit: number, origin: number): SharedArrayBuffer {
    const capacity = capacityFor(limit)
    const memory = new SharedArrayBuffer(SLOT_BYTES + 8 * capacity)
    new Int32Array(memory)[CAPACITY] = capacity
    new Float64Array(memory, ORIGIN_BYTES, 1)[0] = origin
    // As if written in the lap before the first, at the origin.
    new BigInt64Array(memory, SLOT_BYTES, capacity).fill(taggedWord(TAGS - 1, 0))
    return memory
  }

  /** Whether this was made by `SharedRing.memory` for such a limit. */
  static isOne(memory: SharedArrayBuffer, limit: number): boolean {
    const capacity = capacityFor(limit)
    return memory.byteLength === SLOT_BYTES + 8 * capacity && new Int32Array(memory)[CAPACITY] === capacity
  }

  /** A clock time as it is stamped, not before it: parts of a millisecond since the origin. */
  ticks(time: number): number {
    return Math.ceil((time - this.origin) * TICKS)
  }

  /** The clock time that was stamped. */
  timeAt(ticks: number): number {
    return this.origin + ticks / TICKS
  }

  /** Nothing is given before this clock time. */
  get pausedUntil(): number {
    return this.origin + Atomics.load(this.#control, PAUSED) / COARSE
  }

  /** The latest of several pauses counts. @param time clock time, kept to a sixteenth of a second, not too early. */
  pauseUntil(time: number): void {
    const wanted = Math.min(Math.ceil((time - this.origin) * COARSE), 2 ** 31 - 1)
    let known = Atomics.load(this.#control, PAUSED)
    while (wanted > known) {
      const found = Atomics.compareExchange(this.#control, PAUSED, known, wanted)
      if (found === known) return
      known = found
    }
  }

  /** Ends a pause. @param now clock time. */
  resume(now: number): void {
    const past = Math.floor((now - this.origin) * COARSE)
    let known = Atomics.load(this.#control, PAUSED)
    while (past < known) {
      const found = Atomics.compareExchange(this.#control, PAUSED, known, past)
      if (found === known) return
      known = found
    }
  }

  /** The number of the next grant. */
  get head(): number {
    return Atomics.load(this.#control, HEAD)
  }

  /** Milliseconds, not after the time that was stamped; undefined when the grant has not been written yet. */
  timeOf(grant: number): number | undefined {
    const place = 2 * (grant & (this.#capacity - 1))
    const high = Atomics.load(this.#halves, place + HIGH)
    if (high >>> HIGH_NUMBER_BITS !== this.#lapOf(grant)) return undefined
    const low = Atomics.load(this.#halves, place + LOW)
    // Had it been overwritten between the two, the head would have moved, which a claim finds out.
    return this.timeAt((high & HIGH_NUMBER_MASK) * 2 ** 32 + (low >>> 0))
  }

  /** Whether `n` grants from `head` on are now the caller's, to be stamped at once. */
  claim(head: number, n: number): boolean {
    return Atomics.compareExchange(this.#control, HEAD, head, (head + n) | 0) === head
  }

  /** Writes the time of claimed grants. @returns false when another thread did meanwhile: then they are no caller's. */
  stamp(head: number, n: number, time: number): boolean {
    let ours = true
    for (let index = 0; index < n; index++) ours = this.write((head + index) | 0, time) && ours
    // Slots above that were given back could not be filled past a grant that was not written.
    const above = (head + n) | 0
    if (above !== this.head && this.isFree(above)) this.#moveUp(above, FREE)
    return ours
  }

  /** Writes the time of a grant unless that has been done. */
  write(grant: number, time: number): boolean {
    const slot = grant & (this.#capacity - 1)
    const lap = this.#lapOf(grant)
    while (true) {
      const before = Atomics.load(this.#slots, slot)
      // Read after the whole word. Laps only increase: if this half is of the lap before, the whole was of that lap,
      // too, or is overwritten already, which the exchange finds out.
      const high = Atomics.load(this.#halves, 2 * slot + HIGH)
      if (high >>> HIGH_NUMBER_BITS !== ((lap - 1) & (TAGS - 1))) return false
      // A time that a refund moves meanwhile is of the lap before, too.
      if (Atomics.compareExchange(this.#slots, slot, before, taggedWord(lap, this.ticks(time))) === before)
        return true
    }
  }

  /** Whether a grant was given back, so that its slot counts for nothing. */
  isFree(grant: number): boolean {
    return this.#ticksOf(grant) === FREE
  }

  /**
   * Gives back `n` grants that were not used, and puts their slots before those that are in use.
   * @param grant the first of them, as it was claimed. Where other refunds have moved them they are found after it.
   * @param time with which they were stamped.
   * @param old grants that were stamped before this time have come back by themselves.
   */
  refund(grant: number, n: number, time: number, old: number): void {
    const ticks = this.ticks(time)
    let left = n
    for (let step = 0; step < MAX_MOVED; step++) {
      const next = (grant + step) | 0
      // Other threads may claim more meanwhile, and move up the grant that is looked for.
      if (next === this.head) return
      if (this.#ticksOf(next) !== ticks || !this.#exchange(next, ticks, FREE)) continue
      left--
      if (left === 0) return this.#moveUp(next, this.ticks(old))
    }
  }

  /**
   * Moves times up into free slots: into those from the head to this one, which may have been given back while one
   * between was not written, and into this one. @param old in ticks.
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
        // Further down all grants have come back, and moving them would gain nothing.
        if (!isBefore(free, grant)) return
        // Further up there may be a grant that is not written yet, and nothing moves past such a grant.
        place = (grant - 1) | 0
        continue
      }
      do while (place !== grant && !this.isFree(place)) place = (place - 1) | 0
      while (place !== grant && !this.#exchange(place, FREE, ticks))
      const isSurplus = place !== grant && !this.#exchange(grant, ticks, FREE)
      if (isSurplus) this.#exchange(place, ticks, FREE)
    }
  }

  /** The ticks written for a grant; undefined when none are, or when they are overwritten already. */
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
