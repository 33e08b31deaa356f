import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered } from './call.js'
import type { Package } from './link.js'

/** Maximum time until the reply to an attempt, after its wait, in milliseconds. */
const ANSWER_WITHIN = 3000

/**
 * The locks on the keys of an IMap. Members see the client as their owner. Each method waits until the cluster is
 * reachable, and throws what the client throws, or UnavailableError, ClosedError or NoAnswerError.
 */
export class MapLocks {
  readonly #map: () => Promise<IMap<string, unknown>>
  readonly #package: Package
  readonly #clock: Clock
  /** Running calls that lock or unlock. */
  readonly #calls = new Set<Promise<unknown>>()

  constructor(map: () => Promise<IMap<string, unknown>>, hazelcast: Package, clock: Clock) {
    this.#map = map
    this.#package = hazelcast
    this.#clock = clock
  }

  /**
   * Locks a key. Returns false if another program has locked it. If the lock is granted after the timeout, unlocks it.
   * @param wait how long the member waits for that program, in milliseconds.
   * @param keepsAlive whether the process stays alive until then.
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
   * Renews a lock of this client for a lease from now. Returns false if it was lost.
   *
   * Locking again sets the lease, and unlocking reverts the second lock. If the client has lost the lock, it acquires
   * it with the first and releases it with the second. The member executes all four calls in this order, because they
   * go to one partition. It does not report the owner of a lock: the first reply may be about another program that
   * unlocks just then, hence the last call.
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

  /**
   * Unlocks a key. Returns false if the lock was lost. If the member can't be reached, the lock ends with its lease.
   */
  unlock(key: string): Promise<boolean> {
    return this.#tracked(this.#unlock(key))
  }

  /** Resolves when no call is running: a lock that is granted after its client has ended stays locked. */
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

/** How long after the request a lock surely lasts without renewal, in milliseconds. */
export function guaranteedLease(lease: number): number {
  return memberLease(lease) - SECOND
}

/**
 * The lease to request from a member: one to two seconds more. A member checks for expired leases once a second, and
 * ends those that expire within that second. So a lock may end almost a second early, and a lock with a lease of 0 is
 * never held.
 */
function memberLease(lease: number): number {
  return Math.floor(lease / SECOND) * SECOND + 2 * SECOND
}

const SECOND = 1000
