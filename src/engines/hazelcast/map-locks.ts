import type { IMap } from 'hazelcast-client'
import { unlocked, type KeyLock, type KeyLocks } from './key-locks.js'
import type { Package } from './link.js'

/** The locks of the keys of an IMap. A member knows the owner of one by its client alone. */
export class MapLocks implements KeyLocks {
  readonly attempt = 25
  readonly longestWait = 30_000
  readonly longestTurns = 5
  readonly #map: () => Promise<IMap<string, unknown>>
  readonly #package: Package

  constructor(map: () => Promise<IMap<string, unknown>>, hazelcast: Package) {
    this.#map = map
    this.#package = hazelcast
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
   * it no more afterwards. All four are carried out in this order, because they go to the same partition. A member does not say
   * who has a lock: one that is asked before may have another program's that is unlocked just then, so one asks after it, too.
   */
  async #relock(key: string, lease: number): Promise<boolean> {
    const map = await this.#map()
    const [wasLocked, again, , isLocked] = await Promise.allSettled([
      map.isLocked(key),
      map.tryLock(key, 0, memberLease(lease)),
      map.unlock(key),
      map.isLocked(key),
    ])
    for (const answer of [wasLocked, again, isLocked])
      if (answer.status === 'rejected') throw answer.reason as Error
      else if (!answer.value) return false
    return true
  }

  async #unlock(key: string): Promise<boolean> {
    const map = await this.#map()
    const { IllegalMonitorStateError } = this.#package
    return unlocked(map.unlock(key), error => error instanceof IllegalMonitorStateError)
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
