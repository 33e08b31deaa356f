import type { Waiters } from '../../base/waiters.js'
import type { Turns } from '../local/local-permits.js'
import type { PermitWaiter } from '../callers.js'

/** Maximum number of threads in the queue. Further threads wait, too, but other threads do not wait for them. */
const PLACES = 256
/**
 * Converts milliseconds to the coarse times of shared memory, sixteenths of a second: 31 bits last for four years.
 */
export const COARSE = 16 / 1000
/** Size of a queue of threads in shared memory, in bytes. */
export const TURNS_BYTES = 4 * (8 + 4 * PLACES)

/**
 * Words at the beginning: the number of the last caller, the number of threads in the queue, the word to which all
 * threads listen, whether a thread has left a permit for earlier waiters, and the time at which the threads that did
 * not take it were notified.
 */
const ARRIVALS = 0
const STANDING = 1
const SIGNALS = 2
const YIELDED = 3
const NOTIFIED_AT = 4
const FIRST_PLACE = 8
/**
 * Words of a place: the number of its first waiter (0: the place is empty), the permits that all waiters of the thread
 * want, the maximum that one of them may want, and the time at which the thread was last seen.
 */
const ARRIVAL = 0
const WANTED = 1
const MAX_WANTED = 2
const SEEN = 3
const PLACE_WORDS = 4

/**
 * The queue of threads that share a limit. The place of a thread has the number that its first waiter got on arrival,
 * and the number of permits that all its waiters want. So the callers of all threads get permits in the order of their
 * arrival: no caller takes a permit that an earlier waiter, in any thread, may need.
 */
export class ThreadTurns implements Turns {
  readonly #words: Int32Array
  readonly #now: () => number
  /** The place of this thread; undefined if it has none. */
  #place: number | undefined
  #arrival = 0
  /** The maximum number of permits that a caller of this thread has wanted. */
  #maxWanted = 1

  /**
   * @param memory `TURNS_BYTES` bytes, initially zero, which all threads share.
   * @param now milliseconds, the same in all threads.
   */
  constructor(memory: SharedArrayBuffer, now: () => number) {
    this.#words = new Int32Array(memory)
    this.#now = now
  }

  arrive(n: number): number {
    this.#maxWanted = Math.max(this.#maxWanted, n)
    // 0 stands for an empty place.
    return (Atomics.add(this.#words, ARRIVALS, 1) + 1) | 0 || this.arrive(n)
  }

  reportWaiters({ first, permits }: Waiters<PermitWaiter>, gaveUp: boolean): void {
    if (first) this.#updatePlace(first.arrival, permits)
    else this.#leave()
    if (gaveUp) this.notify()
  }

  /** Notifies the threads that left permits for waiters of this thread. These waiters have taken all that they can. */
  reportDone(): void {
    const words = this.#words
    if (Atomics.load(words, YIELDED) === 0) return
    Atomics.store(words, YIELDED, 0)
    this.notify()
  }

  /** Records that a permit is left for earlier waiters. Their threads report when they have taken all that they can. */
  yield(): void {
    Atomics.store(this.#words, YIELDED, 1)
  }

  /**
   * Upper bound of the permits that earlier callers of other threads want. A thread knows only its own callers, so of
   * another thread it counts at most those that can have come since its first waiter. @param arrival 0 for a new
   * caller.
   */
  before(arrival: number): number {
    const words = this.#words
    let permits = 0
    for (const place of this.#placesBefore(arrival)) {
      const wanted = Atomics.load(words, place + WANTED)
      const since = (arrival - Atomics.load(words, place + ARRIVAL)) | 0
      permits += arrival === 0 ? wanted : Math.min(wanted, since * Atomics.load(words, place + MAX_WANTED))
    }
    return permits
  }

  /** Lower bound of the same: one for the first waiter of each thread. */
  leastBefore(arrival: number): number {
    return this.#placesBefore(arrival).length
  }

  /**
   * Called when permits have been available for some time, and earlier waiters have not taken them. Notifies all
   * threads. A thread that has not been seen for some time after that is removed from the queue: its event loop is
   * blocked, or it has ended. If it comes back, it gets its former place again. A live thread responds to the
   * notification even if it is not the first, and keeps its place.
   * @param patience milliseconds.
   * @returns whether a thread was removed.
   */
  removeStalled(arrival: number, patience: number): boolean {
    const words = this.#words
    const now = this.#coarseNow()
    const notifiedAt = Atomics.load(words, NOTIFIED_AT)
    const since = (now - notifiedAt) | 0
    if (notifiedAt !== 0 && since >= 0 && since <= patience * COARSE) return false
    let hasRemoved = false
    // Any live thread has been seen since the notification, even if it was long ago.
    if (notifiedAt !== 0 && since >= 0) {
      for (const place of this.#placesBefore(arrival)) {
        const other = Atomics.load(words, place + ARRIVAL)
        if (other === 0 || ((Atomics.load(words, place + SEEN) - notifiedAt) | 0) >= 0) continue
        if (Atomics.compareExchange(words, place + ARRIVAL, other, 0) !== other) continue
        Atomics.sub(words, STANDING, 1)
        hasRemoved = true
      }
    }
    if (hasRemoved) return true
    if (Atomics.compareExchange(words, NOTIFIED_AT, notifiedAt, now || 1) === notifiedAt) this.notify()
    return false
  }

  /** Makes all threads in the queue check again. */
  notify(): void {
    Atomics.add(this.#words, SIGNALS, 1)
    Atomics.notify(this.#words, SIGNALS)
  }

  /** Resolves when a notification came since `listen` was called; does not keep the process alive. */
  async listen(): Promise<void> {
    const waiting = waitAsync(this.#words, SIGNALS, Atomics.load(this.#words, SIGNALS))
    await waiting.value
  }

  /** Returns the places of other threads with an earlier first waiter. */
  #placesBefore(arrival: number): readonly number[] {
    const words = this.#words
    if (Atomics.load(words, STANDING) === 0) return []
    const places: number[] = []
    for (let place = FIRST_PLACE; place < words.length; place += PLACE_WORDS) {
      const other = Atomics.load(words, place + ARRIVAL)
      if (other === 0 || place === this.#place) continue
      if (arrival === 0 || isBefore(other, arrival)) places.push(place)
    }
    return places
  }

  #updatePlace(arrival: number, permits: number): void {
    const words = this.#words
    // Another thread may have removed this one.
    if (this.#place !== undefined && Atomics.load(words, this.#place + ARRIVAL) !== this.#arrival) {
      this.#place = undefined
    }
    this.#place ??= this.#freePlace(arrival)
    if (this.#place === undefined) return
    Atomics.store(words, this.#place + WANTED, permits)
    Atomics.store(words, this.#place + MAX_WANTED, this.#maxWanted)
    Atomics.store(words, this.#place + SEEN, this.#coarseNow())
    // In one step, so that no other thread finds the place empty between two waiters of this thread.
    Atomics.compareExchange(words, this.#place + ARRIVAL, this.#arrival, arrival)
    this.#arrival = arrival
  }

  #leave(): void {
    if (this.#place === undefined) return
    const words = this.#words
    // Another thread may have removed this one already, and a third may have the place now.
    const own = Atomics.compareExchange(words, this.#place + ARRIVAL, this.#arrival, 0) === this.#arrival
    if (own) Atomics.sub(words, STANDING, 1)
    this.#place = undefined
  }

  /** Takes a place for a caller. */
  #freePlace(arrival: number): number | undefined {
    const words = this.#words
    for (let place = FIRST_PLACE; place < words.length; place += PLACE_WORDS) {
      if (Atomics.compareExchange(words, place + ARRIVAL, 0, arrival) !== 0) continue
      Atomics.add(words, STANDING, 1)
      this.#arrival = arrival
      return place
    }
    return undefined
  }

  #coarseNow(): number {
    return Math.floor(this.#now() * COARSE) | 0
  }
}

/** Whether one number is before another. Numbers wrap around, so their difference decides. */
export function isBefore(one: number, other: number): boolean {
  return ((one - other) | 0) < 0
}

/** Newer than the type declarations of the compiler. */
const { waitAsync } = Atomics as unknown as {
  readonly waitAsync: (
    words: Int32Array,
    index: number,
    value: number,
  ) => { readonly value: string | Promise<string> }
}
