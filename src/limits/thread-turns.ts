import { COARSE } from './coarse-time.js'
import type { Turns } from './queue.js'
import type { Waiter } from './waiting-line.js'

/** So many threads can stand in line. A further one waits, too, but is not waited for. */
const PLACES = 256
/** Bytes of shared memory that a line of threads takes. */
export const TURNS_BYTES = 4 * (4 + 3 * PLACES)

/** Words at the beginning: the number of the last caller, how many threads stand, what everybody listens to. */
const ARRIVALS = 0
const STANDING = 1
const SIGNALS = 2
const FIRST_PLACE = 4
/** Words of a place: the number of its caller (0: nobody stands there), the permits it wants, when it last moved. */
const ARRIVAL = 0
const WANTED = 1
const SEEN = 2
const PLACE_WORDS = 3

/**
 * The line of threads that share a limit. Each stands in it with the first of its own callers, by the number that the
 * caller got when it came, so the callers of all threads are served in the order in which they came.
 */
export class ThreadTurns implements Turns {
  readonly #words: Int32Array
  readonly #now: () => number
  /** Where this thread stands; undefined when it does not. */
  #place: number | undefined
  #arrival = 0

  /**
   * @param memory of `TURNS_BYTES`, zero at first, shared by all threads.
   * @param now milliseconds, the same in all threads.
   */
  constructor(memory: SharedArrayBuffer, now: () => number) {
    this.#words = new Int32Array(memory)
    this.#now = now
  }

  arrive(): number {
    // 0 stands for nobody.
    return (Atomics.add(this.#words, ARRIVALS, 1) + 1) | 0 || this.arrive()
  }

  stand(first: Waiter | undefined, gaveUp: boolean): void {
    const words = this.#words
    if (!first) this.#leave()
    else if (!this.#standsWith(first)) {
      this.#leave()
      this.#place = this.#freePlace(first)
      this.#arrival = first.arrival
    }
    if (this.#place !== undefined) Atomics.store(words, this.#place + SEEN, this.#coarseNow())
    if (gaveUp) this.tell()
  }

  /** How many permits the first callers of other threads want who came before. @param arrival 0 for one who comes now. */
  before(arrival: number): number {
    const words = this.#words
    if (Atomics.load(words, STANDING) === 0) return 0
    let permits = 0
    for (let place = FIRST_PLACE; place < words.length; place += PLACE_WORDS) {
      const other = Atomics.load(words, place + ARRIVAL)
      if (other === 0 || place === this.#place) continue
      if (arrival === 0 || isBefore(other, arrival)) permits += Atomics.load(words, place + WANTED)
    }
    return permits
  }

  /**
   * Takes a thread out of the line that has not come for its permits although they were there: its event loop stands
   * still, or it was ended. If it comes after all it stands where it stood.
   * @param patience milliseconds since it was last seen.
   * @returns whether there was one.
   */
  passOver(arrival: number, patience: number): boolean {
    const words = this.#words
    for (let place = FIRST_PLACE; place < words.length; place += PLACE_WORDS) {
      const other = Atomics.load(words, place + ARRIVAL)
      if (other === 0 || place === this.#place || (arrival !== 0 && !isBefore(other, arrival))) continue
      const unseen = (this.#coarseNow() - Atomics.load(words, place + SEEN)) | 0
      if (unseen <= patience * COARSE) continue
      if (Atomics.compareExchange(words, place + ARRIVAL, other, 0) !== other) continue
      Atomics.sub(words, STANDING, 1)
      return true
    }
    return false
  }

  /** Makes all threads that stand in line look again. */
  tell(): void {
    Atomics.add(this.#words, SIGNALS, 1)
    Atomics.notify(this.#words, SIGNALS)
  }

  /** Resolves when something was told since `listen` was called; does not keep the process alive. */
  async listen(): Promise<void> {
    const waiting = waitAsync(this.#words, SIGNALS, Atomics.load(this.#words, SIGNALS))
    await waiting.value
  }

  #standsWith({ arrival }: Waiter): boolean {
    if (this.#place === undefined || this.#arrival !== arrival) return false
    // Another thread may have passed this one over.
    return Atomics.load(this.#words, this.#place + ARRIVAL) === arrival
  }

  #leave(): void {
    if (this.#place === undefined) return
    const words = this.#words
    // Whoever passed it over has taken it out already, and somebody else may stand there since.
    const own = Atomics.compareExchange(words, this.#place + ARRIVAL, this.#arrival, 0) === this.#arrival
    if (own) Atomics.sub(words, STANDING, 1)
    this.#place = undefined
  }

  /** Takes a place for a caller. */
  #freePlace({ arrival, n }: Waiter): number | undefined {
    const words = this.#words
    for (let place = FIRST_PLACE; place < words.length; place += PLACE_WORDS) {
      if (Atomics.compareExchange(words, place + ARRIVAL, 0, arrival) !== 0) continue
      Atomics.store(words, place + WANTED, n)
      Atomics.store(words, place + SEEN, this.#coarseNow())
      Atomics.add(words, STANDING, 1)
      return place
    }
    return undefined
  }

  #coarseNow(): number {
    return Math.floor(this.#now() * COARSE) | 0
  }
}

/** Numbers go round: which of two is earlier shows in their difference. */
function isBefore(one: number, other: number): boolean {
  return ((one - other) | 0) < 0
}

/** Newer than the library that the compiler knows. */
const { waitAsync } = Atomics as unknown as {
  readonly waitAsync: (
    words: Int32Array,
    index: number,
    value: number,
  ) => { readonly value: string | Promise<string> }
}
