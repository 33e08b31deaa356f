import type { IMap } from 'hazelcast-client'
import type { KeyLock, KeyLocks } from './key-locks.js'

/** The locks of the keys of an IMap. A member knows the owner of one by its client alone. */
export class MapLocks implements KeyLocks {
  readonly attempt = 25
  readonly #map: () => Promise<IMap<string, unknown>>

  constructor(map: () => Promise<IMap<string, unknown>>) {
    this.#map = map
  }

  reached(): Promise<unknown> {
    return this.#map()
  }

  async tryLock(key: string, wait: number, lease: number): Promise<KeyLock | undefined> {
    const map = await this.#map()
    if (!(await map.tryLock(key, wait, memberLease(lease)))) return undefined
    return { renew: again => this.#relock(key, again), unlock: () => this.#unlock(key) }
  }

  certainLife(lease: number): number {
    return memberLease(lease) - SECOND
  }

  /**
   * Locking again sets the lease, and unlocking takes the second lock back; whoever had lost it gets it by that, and has
   * it no more afterwards. All three are carried out in this order, because they go to the same partition.
   */
  async #relock(key: string, lease: number): Promise<boolean> {
    const map = await this.#map()
    const [wasLocked, again] = await Promise.allSettled([
      map.isLocked(key),
      map.tryLock(key, 0, memberLease(lease)),
      map.unlock(key),
    ])
    if (wasLocked.status === 'rejected') throw wasLocked.reason as Error
    if (again.status === 'rejected') throw again.reason as Error
    return wasLocked.value && again.value
  }

  async #unlock(key: string): Promise<void> {
    const map = await this.#map()
    await map.unlock(key)
  }
}

/**
 * The lease to ask a member for: longer by one second and up to two. It looks for those that are over once a second and then ends
 * whatever is due in that second, so that a lock may end almost a second too early; and one that is to last for less than a
 * millisecond is never held.
 */
function memberLease(lease: number): number {
  return Math.floor(lease / SECOND) * SECOND + 2 * SECOND
}

const SECOND = 1000
