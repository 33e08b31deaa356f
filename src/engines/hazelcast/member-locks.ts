import type { Clock, Timer } from '../../clock.js'
import { pause } from './call.js'
import { certainLife, type MapLocks } from './map-locks.js'

/** After so long a grant that is handed on lets other programs have its locks first: milliseconds. */
export const LET_IN_AFTER = 5
/** How long a first attempt waits, for a lock that is just being given back: milliseconds. */
const ATTEMPT = 25
/**
 * A first call that waits on the member for another program lasts so long, each further one twice as long:
 * milliseconds.
 */
const FIRST_WAIT = 1000
const MAX_WAIT = 30_000
/**
 * The lease of such a call, which is renewed at once: a lock whose box has died or given up ends soon. Milliseconds.
 */
const WAIT_LEASE = 0

/** The locks that one grant has on the members. */
interface Holding {
  /** In the order in which they are taken. */
  readonly keys: readonly string[]
  /** The keys that are locked. */
  readonly locked: Set<string>
  /** Until when all of those certainly stay locked, unless an operator takes them away: clock time. */
  until: number
  /** When the last of them was locked: clock time. */
  since: number
  lease: number
  /** Under way while all keys are tried at once. */
  attempt: Promise<boolean> | undefined
  /** Whether the keys are locked one after the other, behind other programs. */
  isWaiting: boolean
  /** Whether all keys are unlocked and locked again, to let another program in. */
  isLettingIn: boolean
  isGone: boolean
  /** Runs at the end of the lease. */
  lapse: Timer | undefined
}

/**
 * The locks on IMap keys, which keep programs in other languages out. The table decides between boxes, and a key is
 * locked only for a grant of the table.
 */
export class MemberLocks {
  readonly #mapLocks: MapLocks
  readonly #clock: Clock
  readonly #holdings = new Map<string, Holding>()

  constructor(mapLocks: MapLocks, clock: Clock) {
    this.#mapLocks = mapLocks
    this.#clock = clock
  }

  /**
   * Locks the keys of a grant, all or none. False: another program has one of them.
   * @throws what the client throws, with nothing locked for longer than the lease
   */
  async tryEnter(id: string, keys: readonly string[], lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id) ?? this.#begin(id, keys, lease)
    holding.lease = lease
    this.#arm(id, holding)
    if (holding.isWaiting) {
      // The locks that it has would end while it waits for the others. A renewal that fails is made again with the
      // next.
      await this.#renewOrDrop(holding).catch(() => undefined)
      return false
    }
    if (holding.locked.size === keys.length) return this.#renewOrDrop(holding)
    return (holding.attempt ??= this.#attempt(id, holding).finally(() => (holding.attempt = undefined)))
  }

  async #attempt(id: string, holding: Holding): Promise<boolean> {
    const attempts = await Promise.allSettled(holding.keys.map(key => this.#lock(holding, key, ATTEMPT)))
    const failed = failureOf(attempts)
    if (failed) {
      await this.leave(id)
      throw failed.reason
    }
    if (holding.isGone) return false
    if (holding.locked.size === holding.keys.length) return true
    await this.#unlock(holding)
    return false
  }

  /** Locks all keys, one after the other in their order, behind other programs. Then `entered` is called. */
  wait(id: string, entered: () => void): void {
    const holding = this.#holdings.get(id)
    if (!holding || holding.isWaiting) return
    holding.isWaiting = true
    void this.#waitFor(holding).then(() => {
      holding.isWaiting = false
      if (!holding.isGone) entered()
    })
  }

  /** Renews the leases of a grant. False: a lock was lost. */
  async renew(id: string, lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id)
    // While another program is let in, `#letIn` renews the leases and finds out what became of the locks.
    if (!holding || holding.isLettingIn) return true
    holding.lease = lease
    if (holding.locked.size < holding.keys.length || !(await this.#renew(holding))) return false
    this.#arm(id, holding)
    return !holding.isGone
  }

  async #renew(holding: Holding): Promise<boolean> {
    const { lease } = holding
    const sentAt = this.#clock.now()
    const held = await Promise.all([...holding.locked].map(key => this.#mapLocks.renew(key, lease)))
    if (!held.every(Boolean)) return false
    holding.until = sentAt + certainLife(lease)
    return true
  }

  /** After a lock was lost all are unlocked, so that they are locked again in their order. */
  async #renewOrDrop(holding: Holding): Promise<boolean> {
    if (await this.#renew(holding)) return !holding.isGone
    await this.#unlock(holding)
    return false
  }

  /**
   * Keeps the locks of a grant for its next user, for a lease from now on. Mostly this needs no call. After {@link
   * LET_IN_AFTER} all keys are unlocked and locked again, because a member does not report that another program
   * waits. If one does, it has a lock then, and the answer is `taken`. Locks that an operator took away are `lost`.
   * @throws what the client throws
   */
  async handOn(id: string, lease: number): Promise<'held' | 'lost' | 'taken'> {
    const holding = this.#holdings.get(id)
    if (!holding) return 'held'
    const now = this.#clock.now()
    const isWhole = !holding.isWaiting && holding.locked.size === holding.keys.length
    if (isWhole && now - holding.since >= LET_IN_AFTER) return this.#letIn(id, holding, lease)
    if (!isWhole || now + lease > holding.until) return (await this.renew(id, lease)) ? 'held' : 'lost'
    holding.lease = lease
    this.#arm(id, holding)
    return 'held'
  }

  async #letIn(id: string, holding: Holding, lease: number): Promise<'held' | 'lost' | 'taken'> {
    const keys = [...holding.locked]
    holding.locked.clear()
    holding.until = Infinity
    holding.isLettingIn = true
    try {
      const unlocked = await Promise.allSettled(keys.map(key => this.#mapLocks.unlock(key)))
      const failed = failureOf(unlocked)
      if (failed) throw failed.reason
      if (unlocked.some(each => each.status === 'fulfilled' && !each.value)) return 'lost'
      if (holding.isGone) return 'taken'
      return (await this.tryEnter(id, holding.keys, lease)) ? 'held' : 'taken'
    } finally {
      holding.isLettingIn = false
    }
  }

  /** Unlocks all keys of a grant, and stops waiting for more. Never throws: what is left ends with its lease. */
  async leave(id: string): Promise<void> {
    const holding = this.#holdings.get(id)
    if (!holding) return
    this.#holdings.delete(id)
    holding.isGone = true
    holding.lapse?.cancel()
    await this.#unlock(holding)
  }

  /** Unlocks everything. Settles when no call waits on a member. */
  async leaveAll(): Promise<void> {
    await Promise.all([...this.#holdings.keys()].map(id => this.leave(id)))
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
      isLettingIn: false,
      isGone: false,
      lapse: undefined,
    }
    this.#holdings.set(id, holding)
    this.#arm(id, holding)
    return holding
  }

  /** Unlocks at the end of the lease. The member's lease is longer, for boxes that have died. */
  #arm(id: string, holding: Holding): void {
    holding.lapse?.cancel()
    if (holding.isGone) return
    holding.lapse = this.#clock.after(holding.lease, () => void this.leave(id), false)
  }

  /**
   * A call can't be taken back, so the first one is short. But the place in the member's queue ends with the call, so
   * where other programs hold the lock for long only a longer one succeeds.
   */
  async #waitFor(holding: Holding): Promise<void> {
    let wait = FIRST_WAIT
    while (!holding.isGone) {
      const next = holding.keys.findIndex(key => !holding.locked.has(key))
      if (next < 0) return
      // A lock in between was lost. Locking it now would break the order.
      if (holding.locked.size > next) await this.#unlock(holding)
      try {
        await this.#lock(holding, holding.keys[next]!, wait, WAIT_LEASE)
        if (holding.locked.has(holding.keys[next]!)) await this.#renewOrDrop(holding)
        else wait = Math.min(2 * wait, MAX_WAIT)
      } catch {
        await pause(this.#clock, false)
      }
    }
  }

  async #lock(holding: Holding, key: string, wait: number, lease = holding.lease): Promise<void> {
    const sentAt = this.#clock.now()
    if (!(await this.#mapLocks.tryLock(key, wait, lease, wait < FIRST_WAIT))) return
    if (holding.isGone) return this.#give(key)
    holding.locked.add(key)
    holding.since = this.#clock.now()
    holding.until = Math.min(holding.until, sentAt + certainLife(lease))
  }

  async #unlock(holding: Holding): Promise<void> {
    const keys = [...holding.locked]
    holding.locked.clear()
    holding.until = Infinity
    await Promise.all(keys.map(key => this.#give(key)))
  }

  async #give(key: string): Promise<void> {
    try {
      await this.#mapLocks.unlock(key)
    } catch {
      // No member was in reach. The lease ends the lock.
    }
  }
}

function failureOf(calls: readonly PromiseSettledResult<unknown>[]): PromiseRejectedResult | undefined {
  return calls.find(call => call.status === 'rejected')
}
