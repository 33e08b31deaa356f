import type { Clock, Timer } from '../base/clock.js'

/** Maximum time for which a transaction whose request was sent delays the later ones, in milliseconds. */
const MAX_DELAY = 250

export interface Turn {
  /** Settles when all earlier turns have ended; undefined if there are none. */
  readonly before: Promise<void> | undefined
  readonly end: () => void
}

/**
 * The order in which transactions of a process that share keys send their requests: each when the earlier ones have
 * sent their commits. The engine then finds the keys free. Otherwise it would queue and wake each request.
 * @returns a function that takes a turn after all that share a key. The turn ends by itself if the engine does not grant
 * the locks in time.
 */
export function keyOrder(clock: Clock): (keys: readonly string[]) => Turn {
  /** The end of the newest turn of each key. */
  const newest = new Map<string, Promise<void>>()
  return keys => {
    const earlier = new Set<Promise<void>>()
    let timer: Timer | undefined
    let isOver = false
    let resolve!: () => void
    const own = new Promise<void>(done => (resolve = done))
    for (const key of keys) {
      const other = newest.get(key)
      if (other) earlier.add(other)
      newest.set(key, own)
    }
    const end = (): void => {
      isOver = true
      timer?.cancel()
      for (const key of keys) if (newest.get(key) === own) newest.delete(key)
      resolve()
    }
    const begin = (): void => {
      if (!isOver) timer = clock.after(MAX_DELAY, end, false)
    }
    if (earlier.size === 0) {
      begin()
      return { before: undefined, end }
    }
    return { before: Promise.all(earlier).then(begin), end }
  }
}
