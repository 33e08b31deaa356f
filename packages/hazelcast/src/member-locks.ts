import type { Clock, Timer } from 'signalbox/engine'
import { pause } from './call.js'
import { guaranteedLease, type MapLocks } from './map-locks.js'

/** Maximum age of the locks of a grant before other programs get a chance to lock the keys, in milliseconds. */
export const YIELD_AFTER = 5
/** Maximum wait of the first attempt, for a lock that is just being released, in milliseconds. */
const ATTEMPT_WAIT = 25
/**
 * Maximum time that the first call waits on the member for another program, in milliseconds. Each further call waits
 * twice as long.
 */
const FIRST_WAIT = 1000
const MAX_WAIT = 30_000
/**
 * The lease of such a call, in milliseconds. It is renewed at once. So if the box has died or given up, the lock ends
 * soon.
 */
const WAIT_LEASE = 0

/** The locks that one grant has on the members. */
interface Holding {
  /** In the order in which they are locked. */
  readonly keys: readonly string[]
  /** The keys that are locked. */
  readonly locked: Set<string>
  /** The clock time until which these keys certainly stay locked, unless an operator unlocks them. */
  until: number
  /** The clock time at which the last of them was locked. */
  since: number
  lease: number
  /** Set while all keys are tried at once. */
  attempt: Promise<boolean> | undefined
  /** Whether the keys are being locked one by one, behind other programs. */
  isWaiting: boolean
  /** Whether all keys are being unlocked and locked again, to give other programs a chance. */
  isYielding: boolean
  isReleased: boolean
  /** Runs at the end of the lease. */
  expiry: Timer | undefined
}

/**
 * The locks on IMap keys, which exclude programs in other languages. The entries of keys decide between boxes,
 * and a key is locked only for a grant of theirs.
 */
export class MemberLocks {
  readonly #mapLocks: MapLocks
  readonly #clock: Clock
  readonly #holdings = new Map<string, Holding>()
  /** The last unlock of each grant, until it is done. */
  readonly #unlocking = new Map<string, Promise<void>>()

  constructor(mapLocks: MapLocks, clock: Clock) {
    this.#mapLocks = mapLocks
    this.#clock = clock
  }

  /**
   * Locks the keys of a grant, all or none. Returns false if another program has one of them.
   * @throws errors of the client, with nothing locked for longer than the lease
   */
  async tryLock(id: string, keys: readonly string[], lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id) ?? this.#begin(id, keys, lease)
    holding.lease = lease
    this.#setExpiry(id, holding)
    if (holding.isWaiting) {
      // Otherwise the locks that it has would expire while it waits for the others. If this renewal fails, the next one
      // follows.
      await this.#renewOrDrop(holding).catch(() => undefined)
      return false
    }
    if (holding.locked.size === keys.length) return this.#renewOrDrop(holding)
    return (holding.attempt ??= this.#attempt(id, holding).finally(() => (holding.attempt = undefined)))
  }

  async #attempt(id: string, holding: Holding): Promise<boolean> {
    const attempts = await Promise.allSettled(holding.keys.map(key => this.#lock(holding, key, ATTEMPT_WAIT)))
    const failed = failureOf(attempts)
    if (failed) {
      // A later attempt for the same request may have locked the keys meanwhile.
      await (this.#holdings.get(id) === holding ? this.unlock(id) : this.#unlockKeys(holding))
      throw failed.reason
    }
    if (holding.isReleased) return false
    if (holding.locked.size === holding.keys.length) return true
    await this.#unlockKeys(holding)
    return false
  }

  /** Locks all keys, one by one in their order, behind other programs. Then calls `entered`. */
  wait(id: string, entered: () => void): void {
    const holding = this.#holdings.get(id)
    if (!holding || holding.isWaiting) return
    holding.isWaiting = true
    void this.#waitFor(holding).then(() => {
      holding.isWaiting = false
      if (!holding.isReleased) entered()
    })
  }

  /** Renews the leases of a grant. Returns false if a lock was lost. */
  async renew(id: string, lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id)
    // `#yield` renews the leases, and finds out whether the locks were lost.
    if (!holding || holding.isYielding) return true
    holding.lease = lease
    if (holding.locked.size < holding.keys.length || !(await this.#renew(holding))) return false
    this.#setExpiry(id, holding)
    return !holding.isReleased
  }

  async #renew(holding: Holding): Promise<boolean> {
    const { lease } = holding
    const sentAt = this.#clock.now()
    const held = await Promise.all([...holding.locked].map(key => this.#mapLocks.renew(key, lease)))
    if (!held.every(Boolean)) return false
    holding.until = sentAt + guaranteedLease(lease)
    return true
  }

  /** Renews the locks. If one was lost, unlocks all, so that they are locked again in their order. */
  async #renewOrDrop(holding: Holding): Promise<boolean> {
    if (await this.#renew(holding)) return !holding.isReleased
    await this.#unlockKeys(holding)
    return false
  }

  /**
   * Keeps the locks of a grant for its next turn, for a lease from now. Usually this needs no call. After {@link
   * YIELD_AFTER}, unlocks all keys and locks them again, because a member does not report that another program waits.
   * If one does, it gets a lock then, and the result is `taken`. The result is `lost` if an operator has unlocked a
   * key.
   * @throws errors of the client
   */
  async reuse(id: string, lease: number): Promise<'held' | 'lost' | 'taken'> {
    const holding = this.#holdings.get(id)
    if (!holding) return 'held'
    const now = this.#clock.now()
    const isWhole = !holding.isWaiting && holding.locked.size === holding.keys.length
    if (isWhole && now - holding.since >= YIELD_AFTER) return this.#yield(id, holding, lease)
    if (!isWhole || now + lease > holding.until) return (await this.renew(id, lease)) ? 'held' : 'lost'
    holding.lease = lease
    this.#setExpiry(id, holding)
    return 'held'
  }

  async #yield(id: string, holding: Holding, lease: number): Promise<'held' | 'lost' | 'taken'> {
    const keys = [...holding.locked]
    holding.locked.clear()
    holding.until = Infinity
    holding.isYielding = true
    try {
      const unlocked = await Promise.allSettled(keys.map(key => this.#mapLocks.unlock(key)))
      const failed = failureOf(unlocked)
      if (failed) throw failed.reason
      if (unlocked.some(each => each.status === 'fulfilled' && !each.value)) return 'lost'
      if (holding.isReleased) return 'taken'
      return (await this.tryLock(id, holding.keys, lease)) ? 'held' : 'taken'
    } finally {
      holding.isYielding = false
    }
  }

  /**
   * Unlocks all keys of a grant, and stops waiting for more. Settles when they are unlocked, even if an earlier call
   * unlocks them. Never throws: remaining locks end with their leases.
   */
  async unlock(id: string): Promise<void> {
    const before = this.#unlocking.get(id)
    const holding = this.#holdings.get(id)
    if (!holding) return before
    this.#holdings.delete(id)
    holding.isReleased = true
    holding.expiry?.cancel()
    const unlocking = Promise.all([before, this.#unlockKeys(holding)]).then(() => undefined)
    this.#unlocking.set(id, unlocking)
    await unlocking
    if (this.#unlocking.get(id) === unlocking) this.#unlocking.delete(id)
  }

  /** Whether any client has locked a key. @throws errors of the client */
  isLocked(key: string): Promise<boolean> {
    return this.#mapLocks.isLocked(key)
  }

  /** Unlocks everything. Resolves when no call is running on a member. */
  async unlockAll(): Promise<void> {
    await Promise.all([...this.#holdings.keys()].map(id => this.unlock(id)))
    await this.#mapLocks.settled()
  }

  #begin(id: string, keys: readonly string[], lease: number): Holding {
    const holding: Holding = {
      keys: [...keys].sort(),
      locked: new Set(),
      until: Infinity,
      since: -Infinity,
      lease,
      attempt: undefined,
      isWaiting: false,
      isYielding: false,
      isReleased: false,
      expiry: undefined,
    }
    this.#holdings.set(id, holding)
    this.#setExpiry(id, holding)
    return holding
  }

  /** Unlocks at the end of the lease. The member's lease is longer; it is for boxes that have died. */
  #setExpiry(id: string, holding: Holding): void {
    holding.expiry?.cancel()
    if (holding.isReleased) return
    holding.expiry = this.#clock.after(holding.lease, () => void this.unlock(id), false)
  }

  /**
   * Waits until all keys are locked. A call can't be cancelled, so the first one is short. But the place in the
   * member's queue ends with the call, so if other programs hold the lock for long, only a longer call succeeds.
   */
  async #waitFor(holding: Holding): Promise<void> {
    let wait = FIRST_WAIT
    while (!holding.isReleased) {
      const next = holding.keys.findIndex(key => !holding.locked.has(key))
      if (next < 0) return
      // A lock in between was lost. Locking it now would break the order.
      if (holding.locked.size > next) await this.#unlockKeys(holding)
      try {
        const key = holding.keys[next]!
        await this.#lock(holding, key, wait, WAIT_LEASE)
        if (!holding.locked.has(key)) wait = Math.min(2 * wait, MAX_WAIT)
        // Check-ins renew the other locks until the last one is acquired. One may have been lost since.
        else if (holding.locked.size === holding.keys.length) await this.#renewOrDrop(holding)
        else if (!(await this.#mapLocks.renew(key, holding.lease))) await this.#unlockKeys(holding)
      } catch {
        await pause(this.#clock, false)
      }
    }
  }

  async #lock(holding: Holding, key: string, wait: number, lease = holding.lease): Promise<void> {
    const sentAt = this.#clock.now()
    if (!(await this.#mapLocks.tryLock(key, wait, lease, wait < FIRST_WAIT))) return
    if (holding.isReleased) return this.#tryUnlock(key)
    holding.locked.add(key)
    holding.since = this.#clock.now()
    holding.until = Math.min(holding.until, sentAt + guaranteedLease(lease))
  }

  async #unlockKeys(holding: Holding): Promise<void> {
    const keys = [...holding.locked]
    holding.locked.clear()
    holding.until = Infinity
    await Promise.all(keys.map(key => this.#tryUnlock(key)))
  }

  async #tryUnlock(key: string): Promise<void> {
    try {
      await this.#mapLocks.unlock(key)
    } catch {
      // No member was reachable. The lock ends with its lease.
    }
  }
}

function failureOf(calls: readonly PromiseSettledResult<unknown>[]): PromiseRejectedResult | undefined {
  return calls.find(call => call.status === 'rejected')
}
