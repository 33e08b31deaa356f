import type { Clock, Timer } from '../../clock.js'
import { answered } from './call.js'
import type { KeyLock, KeyLocks } from './key-locks.js'

/** A call that waits for another program is parked on the member for so long at once: milliseconds. */
const PARKED = 1000
const PAUSE = 200

/** The locks that one grant has on the members. */
interface Holding {
  /** In the order in which they are taken. */
  readonly keys: readonly string[]
  /** Those that are locked. */
  readonly locked: Map<string, KeyLock>
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
 * The locks of keys that keep programs in other languages out, while the table decides between boxes. Whoever has a key here
 * has it of the table first.
 */
export class MemberLocks {
  readonly #keyLocks: KeyLocks
  readonly #clock: Clock
  readonly #holdings = new Map<string, Holding>()
  /** Calls that are parked on a member, and what is being given back. */
  readonly #parked = new Set<Promise<unknown>>()

  constructor(keyLocks: KeyLocks, clock: Clock) {
    this.#keyLocks = keyLocks
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
    const attempts = await Promise.allSettled(
      holding.keys.map(key => this.#lock(holding, key, this.#keyLocks.attempt)),
    )
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
    if (holding.locked.size < holding.keys.length) return false
    await this.#keyLocks.reached()
    const sentAt = this.#clock.now()
    const renewals = [...holding.locked.values()].map(lock => answered(lock.renew(lease), this.#clock))
    const held = await Promise.all(renewals)
    if (!held.every(Boolean)) return false
    holding.until = sentAt + this.#keyLocks.certainLife(lease)
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

  /** Unlocks what the grant has and takes back what it waits for. Never throws: what is left ends by itself. */
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
      locked: new Map(),
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
    await this.#keyLocks.reached()
    const { lease } = holding
    const sentAt = this.#clock.now()
    const call = this.#keyLocks.tryLock(key, wait, lease)
    this.#parked.add(call)
    const parked = (): void => void this.#parked.delete(call)
    call.then(parked, parked)
    // Granted when nobody wants it any more, because a call can't be taken back.
    const lock = await answered(call, this.#clock, wait + CALL, late => void (late && this.#give(late)))
    if (!lock) return
    if (holding.isGone) await this.#give(lock)
    else {
      holding.locked.set(key, lock)
      holding.until = Math.min(holding.until, sentAt + this.#keyLocks.certainLife(lease))
    }
  }

  async #unlock(holding: Holding): Promise<void> {
    const locks = [...holding.locked.values()]
    holding.locked.clear()
    holding.until = Infinity
    if (locks.length === 0) return
    try {
      await this.#keyLocks.reached()
    } catch {
      // Each ends by itself.
      return
    }
    await Promise.all(locks.map(lock => this.#give(lock)))
  }

  /** An unlock that fails was of a lock that had been lost, or can't be helped: it ends by itself. */
  async #give(lock: KeyLock): Promise<void> {
    try {
      await answered(lock.unlock(), this.#clock)
    } catch {
      // As said.
    }
  }
}

/** How long an answer may come after its wait: milliseconds. */
const CALL = 3000
