import type { LockInUse } from '../lock-in-use.js'
import type { Wait } from './frames.js'

/** Maximum number of waits that are listed. */
const MAX_LISTED = 8

/** The waits for locks that were seen. */
export class Waits {
  #current: ReadonlyMap<string, Wait> = new Map()
  #ended: readonly Wait[] = []

  /** The newest first: those that go on, and those that have ended. */
  get listed(): readonly Wait[] {
    return [...[...this.#current.values()].reverse(), ...this.#ended].slice(0, MAX_LISTED)
  }

  /** The trains that wait. */
  get trains(): readonly string[] {
    return [...this.#current.values()].flatMap(({ waiter }) => waiter.train ?? [])
  }

  /**
   * Takes what is locked now.
   * @param nameOf returns the name of a location.
   */
  take(locks: readonly LockInUse[], nameOf: (location: string) => string): void {
    const now = new Map<string, Wait>()
    for (const { location, holders, waiters } of locks) {
      const [holder] = holders
      // A waiter of several locks is named at the first one that is held.
      if (!holder) continue
      for (const waiter of waiters) {
        const id = waiter.train ?? waiter.who
        if (!now.has(id)) now.set(id, { waiter, holder, station: nameOf(location) })
      }
    }
    const ended = [...this.#current].flatMap(([id, wait]) => (now.has(id) ? [] : [wait]))
    this.#ended = [...ended, ...this.#ended].slice(0, MAX_LISTED)
    // Those that go on keep their order.
    const going = [...this.#current.keys()].filter(id => now.has(id))
    this.#current = new Map([...going, ...now.keys()].map(id => [id, now.get(id)!]))
  }
}
