import type { SharedRing } from './shared-ring.js'
import { SharedSliding, type SharedUse } from './shared-window.js'
import { intervalOf } from '../../engine/limits/smooth-window.js'

/**
 * The low bits of a word are the last bits of a time, which are enough to restore it near the present. The other bits
 * are the last bits of the head that it is for. Within a window at most `limit` grants are claimed, so these bits
 * identify the head.
 */
const TIME_BITS = 42n
const TIMES = 2 ** Number(TIME_BITS)
const TIME_MASK = (1n << TIME_BITS) - 1n
const HEAD_MASK = 2 ** 21 - 1
/**
 * Maximum number of parts of a millisecond, as a power of two. It is more than the ring has, so that a short interval
 * is not lost in rounding.
 */
const FINEST = 17
/** Maximum number of parts of a window, as a power of two: the range of a word. */
const MAX_PART_BITS = 40

/**
 * Evenly spaced permits, with the bound of the sliding window in addition. The ring shows when the next one is
 * available: after as many intervals as the newest grant has permits. Only the delay of that grant by a timer, which
 * the next one makes up for, is stored elsewhere: in a word with the time of the next permit, and its head. A thread
 * that claims grants advances the head, which invalidates the word, and then writes a new one. A thread that reads in
 * between, or if that write never happens, uses the ring, which is never too early.
 */
export class SharedSmooth extends SharedSliding {
  readonly #words: BigInt64Array
  readonly #interval: number
  /** Parts of a millisecond. */
  readonly #parts: number
  #stored = 0n
  /** Clock time at which the next permit is available, as of the last `look`. */
  #openAt = -Infinity

  /**
   * @param memory as for a sliding window.
   * @param words shared memory, of which the first word is used.
   */
  constructor(limit: number, memory: number, ring: SharedRing, words: BigInt64Array) {
    super(limit, memory, ring)
    this.#words = words
    this.#interval = intervalOf(limit, memory)
    this.#parts = 2 ** Math.min(FINEST, MAX_PART_BITS - Math.ceil(Math.log2(memory)))
  }

  override look(head: number, now: number): void {
    this.#stored = Atomics.load(this.#words, 0)
    const shown = this.#afterNewest(head, now)
    const isOfHead = Number(this.#stored >> TIME_BITS) === (head & HEAD_MASK)
    // The word is too late if the newest grant was returned.
    this.#openAt = isOfHead ? Math.min(this.#storedTime(now), shown) : shown
  }

  override readyAt(head: number, now: number, wanted: number, others: number): number {
    // Unused permits do not accumulate: an interval for each of the others comes first.
    const spaced = others > 0 ? Math.max(now, this.#openAt) + others * this.#interval : this.#openAt
    return Math.max(spaced, super.readyAt(head, now, wanted, others))
  }

  override given(head: number, n: number, time: number, late: number): void {
    const openAt = Math.max(this.#openAt, time - late) + n * this.#interval
    const parts = Math.round(this.#partsAt(openAt)) % TIMES
    const word = (BigInt((head + n) & HEAD_MASK) << TIME_BITS) | BigInt(parts)
    // A thread that is late must not overwrite the word of a later grant.
    Atomics.compareExchange(this.#words, 0, this.#stored, word)
  }

  override use(head: number, now: number): SharedUse {
    return { used: super.use(head, now).used, resetIn: Math.max(this.#openAt - now, 0) }
  }

  #storedTime(now: number): number {
    const present = Math.round(this.#partsAt(now))
    const ahead = Number(this.#stored & TIME_MASK) - (present % TIMES)
    const nearest = ahead - TIMES * Math.round(ahead / TIMES)
    return this.ring.origin + (present + nearest) / this.#parts
  }

  /** Parts since the origin. */
  #partsAt(time: number): number {
    return (time - this.ring.origin) * this.#parts
  }

  /**
   * Returns the clock time at which the next permit is available, by the ring. If the newest grant was returned, or the
   * one before has moved into its place, its interval is over; otherwise the newest would not have been granted.
   */
  #afterNewest(head: number, now: number): number {
    let newest = -Infinity
    let n = 0
    for (; n < this.limit; n++) {
      const time = this.ring.timeAtHead((head - n - 1) | 0, head, now)
      // Permits that were granted together have one time.
      if (n > 0 && time !== newest) break
      newest = time
      if (now - newest > this.limit * this.#interval) return -Infinity
    }
    return newest + n * this.#interval
  }
}
