import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered } from './call.js'
import type { Package } from './link.js'

/** How long the answer to an attempt may come after its wait: milliseconds. */
const ANSWER_WITHIN = 3000

/**
 * The locks on the keys of an IMap. For a member the owner of a lock is a client. Each method waits until the cluster
 * is in reach, and throws what the client throws, or UnavailableError, ClosedError or NoAnswerError.
 */
export class MapLocks {
  readonly #map: () => Promise<IMap<string, unknown>>
  readonly #package: Package
  readonly #clock: Clock
  /** Calls under way that lock or unlock. */
  readonly #calls = new Set<Promise<unknown>>()

  constructor(map: () => Promise<IMap<string, unknown>>, hazelcast: Package, clock: Clock) {
    this.#map = map
    this.#package = hazelcast
    this.#clock = clock
  }

  /**
   * Locks a key. False: another program has it. A lock that comes after the answer was given up is unlocked again.
   * @param wait how long the member waits for that program: milliseconds.
   * @param keepsAlive whether the process stays alive meanwhile.
   */
  async tryLock(key: string, wait: number, lease: number, keepsAlive: boolean): Promise<boolean> {
    const map = await this.#map()
    const call = this.#tracked(map.tryLock(key, wait, memberLease(lease)))
    const late = (isLocked: boolean): void => {
      if (isLocked) this.unlock(key).catch(() => undefined)
    }
    return answered(call, this.#clock, wait + ANSWER_WITHIN, late, keepsAlive)
  }

  /**
   * Renews a lock of this client for a lease from now on. False: it was lost.
   *
   * Locking again sets the lease, and unlocking takes the second lock back. A client that had lost the lock gets it
   * by the first and loses it by the second. The member carries out all four in this order, because they go to one
   * partition. It does not tell the owner of a lock: that of the first answer may be another program that unlocks
   * just then, hence the last call.
   */
  async renew(key: string, lease: number): Promise<boolean> {
    const map = await this.#map()
    const calls = Promise.allSettled([
      map.isLocked(key),
      map.tryLock(key, 0, memberLease(lease)),
      map.unlock(key),
      map.isLocked(key),
    ])
    const [wasLocked, again, , isLocked] = await answered(calls, this.#clock)
    for (const answer of [wasLocked, again, isLocked])
      if (answer.status === 'rejected') throw answer.reason as Error
      else if (!answer.value) return false
    return true
  }

  /** Unlocks a key. False: the lock was lost. One that can't be unlocked ends with its lease. */
  unlock(key: string): Promise<boolean> {
    return this.#tracked(this.#unlock(key))
  }

  /** Settles when no call is under way: what a call locks for a client that has ended stays locked. */
  async settled(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
  }

  async #unlock(key: string): Promise<boolean> {
    const map = await this.#map()
    try {
      await answered(map.unlock(key), this.#clock)
      return true
    } catch (error) {
      if (error instanceof this.#package.IllegalMonitorStateError) return false
      throw error
    }
  }

  #tracked<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call)
    const over = (): void => void this.#calls.delete(call)
    call.then(over, over)
    return call
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
