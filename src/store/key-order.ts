import type { Clock, Timer } from '../clock.js'

/** How long a transaction that has asked the engine keeps back those behind it, in milliseconds. */
const KEEPS_BACK = 250

/** The place of one transaction in the order. */
export interface Turn {
  /** Settles when all before it have ended their turns; undefined if none is before it. */
  readonly before: Promise<void> | undefined
  /** Lets those behind it continue. */
  readonly end: () => void
}

/**
 * The order in which transactions of a process ask the engine for keys that they share: each when those before it have
 * sent their commits. The engine then finds the keys free, where it would queue, wake and poll each request otherwise.
 */
export class KeyOrder {
  readonly #clock: Clock
  /** By key: the end of the newest turn. */
  readonly #newest = new Map<string, Promise<void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes a place behind all that share a key. A turn ends by itself if the engine keeps the transaction waiting. */
  take(keys: readonly string[]): Turn {
    const earlier = new Set<Promise<void>>()
    let timer: Timer | undefined
    let isOver = false
    let resolve!: () => void
    const own = new Promise<void>(done => (resolve = done))
    for (const key of keys) {
      const other = this.#newest.get(key)
      if (other) earlier.add(other)
      this.#newest.set(key, own)
    }
    const end = (): void => {
      isOver = true
      timer?.cancel()
      for (const key of keys) if (this.#newest.get(key) === own) this.#newest.delete(key)
      resolve()
    }
    const begin = (): void => {
      if (!isOver) timer = this.#clock.after(KEEPS_BACK, end, false)
    }
    if (earlier.size === 0) {
      begin()
      return { before: undefined, end }
    }
    return { before: Promise.all(earlier).then(begin), end }
  }
}
