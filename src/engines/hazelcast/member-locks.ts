import type { IMap } from 'hazelcast-client'
import type { Clock, Timer } from '../../clock.js'
import { answered } from './call.js'

/** How long an attempt waits on the member, for what is just being given back: milliseconds. */
const ATTEMPT = 25
/** A call that waits for another program is parked on the member for so long at once: milliseconds. */
const PARKED = 1000
const PAUSE = 200

/** The locks that one grant has on the members. */
interface Holding {
  /** In the order in which they are taken. */
  readonly keys: readonly string[]
  /** Those that are locked. */
  readonly locked: Set<string>
  /** Until when those live for certain, if nobody takes them away: clock time. */
  until: number
  lease: number
  /** Set while all are being tried at once. */
  attempt: Promise<boolean> | undefined
  isWaiting: boolean
  isGone: boolean
  lapse: Timer | undefined
}

/**
 * The locks of IMap keys that keep programs in other languages out, while the table decides between boxes. A member knows
 * the owner of a lock by its client alone, so whoever has a key here has it of the table first.
 */
export class MemberLocks {
  readonly #map: () => Promise<IMap<string, unknown>>
  readonly #clock: Clock
  readonly #holdings = new Map<string, Holding>()
  /** Calls that are parked on a member, and what is being given back. */
  readonly #parked = new Set<Promise<unknown>>()

  constructor(map: () => Promise<IMap<string, unknown>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /**
   * Locks the keys for a grant, all or none. False: another program has one of them.
   * @throws what the client throws, with nothing locked for longer than the lease
   */
  async tryEnter(id: string, keys: readonly string[], lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id) ?? this.#begin(id, keys, lease)
    holding.lease = lease
    if (holding.isWaiting) {
      this.#arm(id, holding)
      return false
    }
    if (holding.locked.size === keys.length) return this.renew(id, lease)
    return (holding.attempt ??= this.#attempt(id, holding).finally(() => (holding.attempt = undefined)))
  }

  async #attempt(id: string, holding: Holding): Promise<boolean> {
    const attempts = await Promise.allSettled(holding.keys.map(key => this.#lock(holding, key, ATTEMPT)))
    const failed = attempts.find(attempt => attempt.status === 'rejected')
    if (failed) {
      await this.leave(id)
      throw failed.reason
    }
    if (holding.isGone) return false
    if (holding.locked.size === holding.keys.length) return true
    await this.#unlock(holding)
    return false
  }

  /** Waits until all keys are locked, one after the other in their order; `entered` is told once that is so. */
  wait(id: string, entered: () => void): void {
    const holding = this.#holdings.get(id)
    if (!holding || holding.isWaiting) return
    holding.isWaiting = true
    void this.#waitFor(holding).then(() => {
      holding.isWaiting = false
      if (!holding.isGone) entered()
    })
  }

  /** Sets the leases anew. False: a lock was lost. */
  async renew(id: string, lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id)
    if (!holding) return true
    holding.lease = lease
    const map = await this.#map()
    const sentAt = this.#clock.now()
    const held = await Promise.all(holding.keys.map(key => this.#relock(map, key, lease)))
    if (!held.every(Boolean)) return false
    holding.until = sentAt + certainLife(lease)
    this.#arm(id, holding)
    return !holding.isGone
  }

  /**
   * Sees to it that the locks live for a lease from now on; asks the members only when they would not. Locks that were taken
   * away are found out within a second, which is as much longer as they live. False: a lock was lost.
   */
  async prolong(id: string, lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id)
    const isWhole = holding && !holding.isWaiting && holding.locked.size === holding.keys.length
    if (!isWhole || this.#clock.now() + lease > holding.until) return this.renew(id, lease)
    holding.lease = lease
    this.#arm(id, holding)
    return true
  }

  /** Unlocks what the grant has and takes back what it waits for. Never throws: what is left ends with its lease. */
  leave(id: string): Promise<void> {
    const leaving = this.#leave(id)
    this.#parked.add(leaving)
    void leaving.then(() => this.#parked.delete(leaving))
    return leaving
  }

  async #leave(id: string): Promise<void> {
    const holding = this.#holdings.get(id)
    if (!holding) return
    this.#holdings.delete(id)
    holding.isGone = true
    holding.lapse?.cancel()
    await this.#unlock(holding)
  }

  /** Unlocks all. Settles when nothing is parked on a member: what was granted to a client that has ended would stay locked. */
  async leaveAll(): Promise<void> {
    await Promise.all([...this.#holdings.keys()].map(id => this.leave(id)))
    await Promise.allSettled([...this.#parked])
  }

  #begin(id: string, keys: readonly string[], lease: number): Holding {
    const holding: Holding = {
      keys: [...keys].sort(),
      locked: new Set(),
      until: Infinity,
      lease,
      attempt: undefined,
      isWaiting: false,
      isGone: false,
      lapse: undefined,
    }
    this.#holdings.set(id, holding)
    this.#arm(id, holding)
    return holding
  }

  /** The member's lease is longer, so who is alive gives back earlier. */
  #arm(id: string, holding: Holding): void {
    holding.lapse?.cancel()
    if (holding.isGone) return
    holding.lapse = this.#clock.after(holding.lease, () => void this.leave(id), false)
  }

  async #waitFor(holding: Holding): Promise<void> {
    while (!holding.isGone) {
      const next = holding.keys.find(key => !holding.locked.has(key))
      if (next === undefined) return
      try {
        await this.#lock(holding, next, PARKED)
      } catch {
        await new Promise<void>(resolve => void this.#clock.after(PAUSE, resolve, false))
      }
    }
  }

  async #lock(holding: Holding, key: string, wait: number): Promise<void> {
    const map = await this.#map()
    const { lease } = holding
    const sentAt = this.#clock.now()
    const call = map.tryLock(key, wait, memberLease(lease))
    this.#parked.add(call)
    const parked = (): void => void this.#parked.delete(call)
    call.then(parked, parked)
    // Granted when nobody wants it any more, because a call can't be taken back.
    const giveBack = (isLocked: boolean): void => {
      if (isLocked) void map.unlock(key).catch(() => undefined)
    }
    const isLocked = await answered(call, this.#clock, wait + CALL, giveBack)
    if (!isLocked) return
    if (holding.isGone) await this.#give(map, key)
    else {
      holding.locked.add(key)
      holding.until = Math.min(holding.until, sentAt + certainLife(lease))
    }
  }

  /**
   * Locking again sets the lease, and unlocking takes the second lock back; whoever had lost it gets it by that, and has
   * it no more afterwards. All three are carried out in this order, because they go to the same partition.
   */
  async #relock(map: IMap<string, unknown>, key: string, lease: number): Promise<boolean> {
    const calls = Promise.allSettled([
      map.isLocked(key),
      map.tryLock(key, 0, memberLease(lease)),
      map.unlock(key),
    ])
    const [wasLocked, again] = await answered(calls, this.#clock)
    if (wasLocked.status === 'rejected') throw wasLocked.reason as Error
    if (again.status === 'rejected') throw again.reason as Error
    return wasLocked.value && again.value
  }

  async #unlock(holding: Holding): Promise<void> {
    const keys = [...holding.locked]
    if (keys.length === 0) return
    holding.locked.clear()
    holding.until = Infinity
    try {
      const map = await this.#map()
      await Promise.all(keys.map(key => this.#give(map, key)))
    } catch {
      // It ends with its lease.
    }
  }

  /** An unlock that fails was of a lock that had been lost, or can't be helped: it ends with its lease. */
  async #give(map: IMap<string, unknown>, key: string): Promise<void> {
    try {
      await answered(map.unlock(key), this.#clock)
    } catch {
      // As said.
    }
  }
}

/** How long an answer may come after its wait: milliseconds. */
const CALL = 3000

/**
 * The lease to ask a member for: longer by one second and up to two. It looks for those that are over once a second and then ends
 * whatever is due in that second, so that a lock may end almost a second too early; and one that is to last for less than a
 * millisecond is never held.
 */
function memberLease(lease: number): number {
  return Math.floor(lease / SECOND) * SECOND + 2 * SECOND
}

/** How long a lock lives at the least after it was asked for: milliseconds. */
function certainLife(lease: number): number {
  return memberLease(lease) - SECOND
}

const SECOND = 1000
