import type { LockInUse } from '../lock-in-use.js'
import type { Wait } from './frames.js'

const MAX_LISTED = 8

export class Waits {
  #current: ReadonlyMap<string, Wait> = new Map()
  #ended: readonly Wait[] = []

  /** The current waits, then those that have ended, each newest first. */
  get listed(): readonly Wait[] {
    return [...[...this.#current.values()].reverse(), ...this.#ended].slice(0, MAX_LISTED)
  }

  get trains(): readonly string[] {
    return [...this.#current.values()].flatMap(({ waiter }) => waiter.train ?? [])
  }

  take(locks: readonly LockInUse[], nameOf: (location: string) => string): void {
    const now = new Map<string, Wait>()
    for (const { location, holders, waiters } of locks) {
      const [holder] = holders
      // A waiter for several locks is listed only at the first one that has a holder.
      if (!holder) continue
      for (const waiter of waiters) {
        const id = waiter.train ?? waiter.who
        if (!now.has(id)) now.set(id, { waiter, holder, station: nameOf(location) })
      }
    }
    const ended = [...this.#current].flatMap(([id, wait]) => (now.has(id) ? [] : [wait]))
    this.#ended = [...ended, ...this.#ended].slice(0, MAX_LISTED)
    // Waits that continue keep their order.
    const going = [...this.#current.keys()].filter(id => now.has(id))
    this.#current = new Map([...going, ...now.keys()].map(id => [id, now.get(id)!]))
  }
}
