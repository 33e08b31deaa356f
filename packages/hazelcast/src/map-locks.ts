import type { IMap } from 'hazelcast-client'
import type { Clock } from 'signalbox/engine'
import { answered } from './call.js'
import type { Package } from './link.js'

/** Maximum time until the reply to an attempt, after its wait, in milliseconds. */
const ANSWER_WITHIN = 3000

type KeyMap = IMap<string, unknown>

/**
 * The locks on the keys of an IMap. Members see the client as their owner. Each method waits until the cluster is
 * reachable, and throws errors of the client, or UnavailableError, ClosedError or NoAnswerError.
 */
export class MapLocks {
  readonly #map: () => Promise<KeyMap>
  readonly #package: Package
  readonly #clock: Clock
  readonly #failures: () => number
  /** Running calls that lock or unlock. */
  readonly #calls = new Set<Promise<unknown>>()
  /** Number of times that each key is locked, or about to be locked, and not yet unlocked. */
  readonly #wanted = new Map<string, number>()
  /** The counter of failures before each of these keys was locked. */
  readonly #lockedAt = new Map<string, number>()
  /** The keys that are locked twice because they were renewed, with the counter of failures before that. */
  readonly #twice = new Map<string, number>()
  /** The latest unlock of each key, until its reply. */
  readonly #unlocking = new Map<string, Promise<unknown>>()
  /** The keys that are being unlocked completely. Until that is done, this client does not lock them. */
  readonly #clearing = new Map<string, Promise<void>>()

  /** @param failures a counter: while it returns the same number, no request was sent twice. */
  constructor(map: () => Promise<KeyMap>, hazelcast: Package, clock: Clock, failures: () => number) {
    this.#failures = failures
    this.#map = map
    this.#package = hazelcast
    this.#clock = clock
  }

  /**
   * Locks a key. Returns false if another program has locked it. If the lock is granted after the timeout, unlocks it.
   * @param wait maximum time that the member waits for that program, in milliseconds.
   * @param keepsAlive whether the process stays alive until then.
   */
  async tryLock(key: string, wait: number, lease: number, keepsAlive: boolean): Promise<boolean> {
    await this.#clearing.get(key)
    const before = this.#unlocking.get(key)
    this.#want(key, 1)
    let isLocked = false
    try {
      const map = await this.#map()
      const call = this.#tracked(map.tryLock(key, wait, memberLease(lease)))
      const late = (isLate: boolean): void => {
        if (!isLate) return
        this.#want(key, 1)
        this.unlock(key).catch(() => undefined)
      }
      isLocked = await answered(call, this.#clock, wait + ANSWER_WITHIN, late, keepsAlive)
      if (isLocked && before && this.#unlocking.get(key) === before) {
        // Replies arrive in order, so the client has repeated the unlock, and it may have undone this lock.
        await answered(before, this.#clock).catch(() => undefined)
        isLocked = await this.renew(key, lease)
      }
      return isLocked
    } finally {
      if (!isLocked) this.#want(key, -1)
    }
  }

  /**
   * Renews a lock of this client for a lease from now. Returns false if it was lost.
   *
   * Locking again sets the lease. The first renewal leaves the key locked twice. Each further one reverts one of the
   * two and locks again, so it takes two calls, and the reply to the first says whether this client is still the owner.
   * All calls of a renewal are executed in their order, because they go to one partition.
   */
  async renew(key: string, lease: number): Promise<boolean> {
    const map = await this.#map()
    if (!this.#wanted.has(key)) return false
    const failures = this.#failures()
    const before = this.#twice.get(key)
    if (before === undefined) return this.#lockTwice(map, key, lease, failures)
    // If a request was sent twice since, the key may be locked once.
    return before === failures ? this.#lockAgain(map, key, lease) : this.#check(map, key, lease)
  }

  async #lockTwice(map: KeyMap, key: string, lease: number, failures: number): Promise<boolean> {
    this.#twice.set(key, failures)
    const checking = this.#check(map, key, lease)
    const [check, second] = await Promise.allSettled([
      checking,
      answered(map.tryLock(key, 0, memberLease(lease)), this.#clock),
    ])
    const isLocked = second.status === 'fulfilled' && second.value
    if (check.status === 'fulfilled' && check.value && isLocked) return true
    await this.#notTwice(map, key, isLocked)
    if (check.status === 'rejected') throw check.reason
    if (check.value && second.status === 'rejected') throw second.reason
    return false
  }

  async #lockAgain(map: KeyMap, key: string, lease: number): Promise<boolean> {
    const calls = Promise.allSettled([map.unlock(key), map.tryLock(key, 0, memberLease(lease))])
    const [unlocked, locked] = await answered(calls, this.#clock)
    const isLocked = locked.status === 'fulfilled' && locked.value
    if (unlocked.status === 'fulfilled' && isLocked) return true
    await this.#notTwice(map, key, unlocked.status === 'rejected' && isLocked)
    const isLost =
      unlocked.status === 'rejected' && unlocked.reason instanceof this.#package.IllegalMonitorStateError
    if (unlocked.status === 'rejected' && !isLost) throw unlocked.reason
    if (locked.status === 'rejected' && !isLost) throw locked.reason
    return false
  }

  /**
   * Records that the key is no longer locked twice.
   * @param isTooMany whether to revert a lock, unless the key was unlocked since.
   */
  async #notTwice(map: KeyMap, key: string, isTooMany: boolean): Promise<void> {
    if (this.#twice.delete(key) && isTooMany)
      await answered(map.unlock(key), this.#clock).catch(() => undefined)
  }

  /**
   * Sets the lease of a lock, and finds out whether it was lost. If the client has lost it, it acquires the lock with
   * the second call and releases it with the third. A member does not report the owner of a lock: the first reply may
   * be about another program that unlocks just then, hence the last call.
   */
  async #check(map: KeyMap, key: string, lease: number): Promise<boolean> {
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

  /**
   * Unlocks a key with a short lease: if the client has repeated the lock, the key stays locked until the lease ends.
   */
  unlockOnce(key: string): Promise<void> {
    return this.#tracked(this.#unlockOnce(key))
  }

  /** Whether any client has locked a key. */
  async isLocked(key: string): Promise<boolean> {
    const map = await this.#map()
    return answered(map.isLocked(key), this.#clock)
  }

  /** Resolves when no call is running: a lock that is granted after its client has ended stays locked. */
  async settled(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls)
  }

  async #unlock(key: string): Promise<boolean> {
    const lockedAt = this.#lockedAt.get(key)
    try {
      await this.#unlockOnce(key)
    } catch (error) {
      if (error instanceof this.#package.IllegalMonitorStateError) return false
      throw error
    }
    if (lockedAt === this.#failures()) return true
    const isLocked = await this.isLocked(key).catch(() => false)
    if (isLocked && !this.#wanted.has(key)) {
      const clearing = this.#clear(key)
      this.#clearing.set(key, clearing)
      await clearing
      this.#clearing.delete(key)
    }
    return true
  }

  async #unlockOnce(key: string): Promise<void> {
    this.#want(key, -1)
    const map = await this.#map().catch((error: unknown) => {
      this.#twice.delete(key)
      throw error
    })
    const calls = [map.unlock(key), ...(this.#twice.delete(key) ? [map.unlock(key)] : [])]
    const call = Promise.all(calls)
    this.#unlocking.set(key, call)
    const over = (): void => {
      if (this.#unlocking.get(key) === call) this.#unlocking.delete(key)
    }
    call.then(over, over)
    await answered(call, this.#clock)
  }

  /**
   * Unlocks a key that is still locked after it was unlocked, unless another program has locked it. The client and the
   * members repeat a request whose reply was lost, so one attempt may lock a key twice. Never throws: the lease of this
   * attempt, which is short, replaces that of the lock.
   */
  async #clear(key: string): Promise<void> {
    try {
      const map = await this.#map()
      const calls = [map.tryLock(key, 0, memberLease(0)), map.unlock(key), map.unlock(key)]
      await answered(Promise.allSettled<unknown>(calls), this.#clock)
    } catch {
      // The member can't be reached.
    }
  }

  #want(key: string, more: 1 | -1): void {
    const count = (this.#wanted.get(key) ?? 0) + more
    if (count > 0) {
      if (!this.#wanted.has(key)) this.#lockedAt.set(key, this.#failures())
      this.#wanted.set(key, count)
    } else {
      this.#wanted.delete(key)
      this.#lockedAt.delete(key)
    }
  }

  #tracked<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call)
    const over = (): void => void this.#calls.delete(call)
    call.then(over, over)
    return call
  }
}

/** Returns the time from a request during which its lock certainly lasts without renewal, in milliseconds. */
export function guaranteedLease(lease: number): number {
  return memberLease(lease) - SECOND
}

/**
 * Returns the lease to request from a member: one to two seconds more. A member checks for expired leases once a
 * second, and ends those that expire within that second. So a lock may end almost a second early, and a lock with a
 * lease of 0 is never held.
 */
function memberLease(lease: number): number {
  return Math.floor(lease / SECOND) * SECOND + 2 * SECOND
}

const SECOND = 1000
