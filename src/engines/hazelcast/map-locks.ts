import type { IMap } from 'hazelcast-client'
import type { Package } from './link.js'

/** The locks of the keys of an IMap. A member knows the owner of one by its client alone. */
export class MapLocks {
  readonly #map: () => Promise<IMap<string, unknown>>
  readonly #package: Package

  constructor(map: () => Promise<IMap<string, unknown>>, hazelcast: Package) {
    this.#map = map
    this.#package = hazelcast
  }

  /** Settles when the cluster is in reach. @throws UnavailableError when it is not in time; ClosedError */
  async reached(): Promise<void> {
    await this.#map()
  }

  /**
   * False: another program has it.
   * @param wait how long the member waits for that one: milliseconds.
   * @throws what the client throws
   */
  async tryLock(key: string, wait: number, lease: number): Promise<boolean> {
    const map = await this.#map()
    return map.tryLock(key, wait, memberLease(lease))
  }

  /**
   * Sees to it that a lock of this client lives for a lease from now on. False: it was lost.
   *
   * Locking again sets the lease, and unlocking takes the second lock back; whoever had lost it gets it by that, and has
   * it no more afterwards. All four are carried out in this order, because they go to the same partition. A member does not say
   * who has a lock: one that is asked before may have another program's that is unlocked just then, so one asks after it, too.
   * @throws what the client throws
   */
  async renew(key: string, lease: number): Promise<boolean> {
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

  /** False: it was lost. @throws what the client throws; then it ends with its lease */
  async unlock(key: string): Promise<boolean> {
    const map = await this.#map()
    try {
      await map.unlock(key)
      return true
    } catch (error) {
      if (error instanceof this.#package.IllegalMonitorStateError) return false
      throw error
    }
  }
}

/** How long a lock need not be renewed after it was asked for: milliseconds. */
export function certainLife(lease: number): number {
  return memberLease(lease) - SECOND
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
