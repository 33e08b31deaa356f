import type { IMap } from 'hazelcast-client'
import type { Package } from './link.js'

/** The locks on the keys of an IMap. For a member the owner of a lock is a client. */
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
   * Locks a key. False: another program has it.
   * @param wait how long the member waits for that program: milliseconds.
   * @throws what the client throws
   */
  async tryLock(key: string, wait: number, lease: number): Promise<boolean> {
    const map = await this.#map()
    return map.tryLock(key, wait, memberLease(lease))
  }

  /**
   * Renews a lock of this client for a lease from now on. False: it was lost.
   *
   * Locking again sets the lease, and unlocking takes the second lock back. A client that had lost the lock gets it
   * by the first and loses it by the second. The member carries out all four in this order, because they go to one
   * partition. It does not tell the owner of a lock: that of the first answer may be another program that unlocks
   * just then, hence the last call.
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

  /** Unlocks a key. False: the lock was lost. @throws what the client throws; then the lock ends with its lease */
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

/** For so long after it was asked for, a lock need not be renewed: milliseconds. */
export function certainLife(lease: number): number {
  return memberLease(lease) - SECOND
}

/**
 * The lease to ask a member for, which is longer by one to two seconds. A member looks for expired leases once a
 * second, and then ends those that expire within that second. So a lock may end almost a second too early, and a lock
 * with a lease of 0 is never held.
 */
function memberLease(lease: number): number {
  return Math.floor(lease / SECOND) * SECOND + 2 * SECOND
}

const SECOND = 1000
