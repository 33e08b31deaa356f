import type { RingReader } from './ring-reader.js'
import { SharedSliding } from './shared-sliding.js'
import type { SharedUse } from './shared-window.js'
import { intervalOf } from '../../engine/limits/smooth-window.js'

/**
 * The low bits of a word give a time, by the last bits of its parts: enough to find it again near the present. The
 * other bits give the head that it is for, by its last bits. Within a window no more than a limit is claimed, so no
 * head is taken for another one.
 */
const TIME_BITS = 42n
const TIMES = 2 ** Number(TIME_BITS)
const TIME_MASK = (1n << TIME_BITS) - 1n
const HEAD_MASK = 2 ** 21 - 1
/**
 * Powers of two: the most parts of a millisecond, more than the ring has, so that a short interval is not lost in
 * rounding.
 */
const FINEST = 17
/** The most parts of a window, which is as far ahead as a word can say. */
const MAX_PART_BITS = 40

/**
 * Permits evenly spaced, with the bound of the sliding window in addition. The ring shows when the next one may come:
 * as many intervals after the newest grant as it was for. Only the delay of that grant by a timer, which is made up
 * for, stands elsewhere: in a word with the time at which the next may come, and the head for which that holds. A
 * thread that claims moves the head, so the word before means nothing any more, and writes a new one last. A thread
 * that looks in between, or when the word never comes, uses the ring, and so is not too early.
 */
export class SharedSmooth extends SharedSliding {
  readonly #words: BigInt64Array
  readonly #interval: number
  /** Of a millisecond. */
  readonly #parts: number
  #stored = 0n
  /** When the next permit may come, as of the last look: clock time. */
  #openAt = -Infinity

  /**
   * @param memory as of a sliding window.
   * @param words of shared memory: the first one is used.
   */
  constructor(limit: number, memory: number, reader: RingReader, words: BigInt64Array) {
    super(limit, memory, reader)
    this.#words = words
    this.#interval = intervalOf(limit, memory)
    this.#parts = 2 ** Math.min(FINEST, MAX_PART_BITS - Math.ceil(Math.log2(memory)))
  }

  override look(head: number, now: number): void {
    this.#stored = Atomics.load(this.#words, 0)
    const shown = this.#afterNewest(head, now)
    const isOfHead = Number(this.#stored >> TIME_BITS) === (head & HEAD_MASK)
    // The word is too late when the newest grant was given back.
    this.#openAt = isOfHead ? Math.min(this.#storedTime(now), shown) : shown
  }

  override readyAt(head: number, now: number, wanted: number, others: number): number {
    // Unused permits do not accumulate: one for each of the others has to come first.
    const spaced = others > 0 ? Math.max(now, this.#openAt) + others * this.#interval : this.#openAt
    return Math.max(spaced, super.readyAt(head, now, wanted, others))
  }

  override given(head: number, n: number, time: number, late: number): void {
    const openAt = Math.max(this.#openAt, time - late) + n * this.#interval
    const parts = Math.round(this.#partsAt(openAt)) % TIMES
    const word = (BigInt((head + n) & HEAD_MASK) << TIME_BITS) | BigInt(parts)
    // A thread that comes late with this must not write over the word of a later grant.
    Atomics.compareExchange(this.#words, 0, this.#stored, word)
  }

  override use(head: number, now: number): SharedUse {
    return { used: super.use(head, now).used, resetIn: Math.max(this.#openAt - now, 0) }
  }

  #storedTime(now: number): number {
    const present = Math.round(this.#partsAt(now))
    const ahead = Number(this.#stored & TIME_MASK) - (present % TIMES)
    const nearest = ahead - TIMES * Math.round(ahead / TIMES)
    return this.reader.ring.origin + (present + nearest) / this.#parts
  }

  /** Parts since the origin. */
  #partsAt(time: number): number {
    return (time - this.reader.ring.origin) * this.#parts
  }

  /**
   * When the next permit may come by what stands in the ring. Where the newest grant was given back, or the one before
   * has moved up into its place, its interval is over: else the newest would not have been given.
   */
  #afterNewest(head: number, now: number): number {
    let newest = -Infinity
    let n = 0
    for (; n < this.limit; n++) {
      const time = this.reader.timeOf((head - n - 1) | 0, head, now)
      // Grants that were given together have one time.
      if (n > 0 && time !== newest) break
      newest = time
      if (now - newest > this.limit * this.#interval) return -Infinity
    }
    return newest + n * this.#interval
  }
}
