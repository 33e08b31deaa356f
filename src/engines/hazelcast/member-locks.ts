import type { Clock, Timer } from '../../clock.js'
import { answered } from './call.js'
import { certainLife, type MapLocks } from './map-locks.js'

/** How long a grant keeps its locks before other programs are let in: milliseconds. */
export const LET_IN_AFTER = 5
/** How long an attempt waits for what is just being given back: milliseconds. */
const ATTEMPT = 25
/** A call that waits for another program is parked on the member for so long at first, then for twice as long: milliseconds. */
const PARKED = 1000
/** How long such a call is parked at the most: milliseconds. */
const LONGEST_PARKED = 30_000
/** What a parked call locks ends so soon unless it is renewed, in case nobody is there any more when it is granted: milliseconds. */
const PARKED_LEASE = 0
const PAUSE = 200

/** The locks that one grant has on the members. */
interface Holding {
  /** In the order in which they are taken. */
  readonly keys: readonly string[]
  /** Those that are locked. */
  readonly locked: Set<string>
  /** Until when those live for certain, if nobody takes them away: clock time. */
  until: number
  /** When the last of them was locked: clock time. */
  since: number
  lease: number
  /** Set while all are being tried at once. */
  attempt: Promise<boolean> | undefined
  isWaiting: boolean
  /** While all are given back and asked for again, to let another program in. */
  isLettingIn: boolean
  isGone: boolean
  lapse: Timer | undefined
}

/**
 * The locks of IMap keys that keep programs in other languages out, while the table decides between boxes. A key is
 * locked here only for a grant of the table.
 */
export class MemberLocks {
  readonly #mapLocks: MapLocks
  readonly #clock: Clock
  readonly #holdings = new Map<string, Holding>()
  /** Calls that are parked on a member, and what is being given back. */
  readonly #parked = new Set<Promise<unknown>>()

  constructor(mapLocks: MapLocks, clock: Clock) {
    this.#mapLocks = mapLocks
    this.#clock = clock
  }

  /**
   * Locks the keys for a grant, all or none. False: another program has one of them.
   * @throws what the client throws, with nothing locked for longer than the lease
   */
  async tryEnter(id: string, keys: readonly string[], lease: number): Promise<boolean> {
    const holding = this.#holdings.get(id) ?? this.#begin(id, keys, lease)
    holding.lease = lease
    this.#arm(id, holding)
    if (holding.isWaiting) {
      // Those that it has would else end while it waits for the others. One that is out of reach is found out later.
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
    // Whoever lets others in sets the leases anew, and finds out what became of the locks.
    if (!holding || holding.isLettingIn) return true
    holding.lease = lease
    if (holding.locked.size < holding.keys.length || !(await this.#renew(holding))) return false
    this.#arm(id, holding)
    return !holding.isGone
  }

  async #renew(holding: Holding): Promise<boolean> {
    const { lease } = holding
    await this.#mapLocks.reached()
    const sentAt = this.#clock.now()
    const renewals = [...holding.locked].map(key => answered(this.#mapLocks.renew(key, lease), this.#clock))
    const held = await Promise.all(renewals)
    if (!held.every(Boolean)) return false
    holding.until = sentAt + certainLife(lease)
    return true
  }

  /** One that was lost while its request waits is waited for anew, with all others, so that they are taken in their order. */
  async #renewOrDrop(holding: Holding): Promise<boolean> {
    if (await this.#renew(holding)) return !holding.isGone
    await this.#unlock(holding)
    return false
  }

  /**
   * Keeps the locks for the next user here, who finds them for a lease from now on. Most of the time the members are not
   * asked. Now and then all are given back and asked for again, because a program that waits there is not heard of: it comes
   * in between, and what it has is `taken`. Locks that were taken away are found out by then.
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
      await this.#mapLocks.reached()
      const unlocks = keys.map(key => answered(this.#mapLocks.unlock(key), this.#clock))
      const unlocked = await Promise.allSettled(unlocks)
      const failed = failureOf(unlocked)
      if (failed) throw failed.reason
      if (unlocked.some(each => each.status === 'fulfilled' && !each.value)) return 'lost'
      if (holding.isGone) return 'taken'
      return (await this.tryEnter(id, holding.keys, lease)) ? 'held' : 'taken'
    } finally {
      holding.isLettingIn = false
    }
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

  /** The member's lease is longer, so who is alive gives back earlier. */
  #arm(id: string, holding: Holding): void {
    holding.lapse?.cancel()
    if (holding.isGone) return
    holding.lapse = this.#clock.after(holding.lease, () => void this.leave(id), false)
  }

  /**
   * A call can't be taken back, so the first is a short one; but the place in the member's queue ends with it, and where
   * other programs are inside for long only a longer one is served.
   */
  async #waitFor(holding: Holding): Promise<void> {
    let wait = PARKED
    while (!holding.isGone) {
      const next = holding.keys.findIndex(key => !holding.locked.has(key))
      if (next < 0) return
      // What was lost meanwhile would be taken after those that come after it.
      if (holding.locked.size > next) await this.#unlock(holding)
      try {
        await this.#lock(holding, holding.keys[next]!, wait, PARKED_LEASE)
        if (holding.locked.has(holding.keys[next]!)) await this.#renewOrDrop(holding)
        else wait = Math.min(2 * wait, LONGEST_PARKED)
      } catch {
        await new Promise<void>(resolve => void this.#clock.after(PAUSE, resolve, false))
      }
    }
  }

  async #lock(holding: Holding, key: string, wait: number, lease = holding.lease): Promise<void> {
    await this.#mapLocks.reached()
    const sentAt = this.#clock.now()
    const call = this.#mapLocks.tryLock(key, wait, lease)
    this.#parked.add(call)
    const parked = (): void => void this.#parked.delete(call)
    call.then(parked, parked)
    // Granted when nobody wants it any more, because a call can't be taken back.
    const late = (isLocked: boolean): void => void (isLocked && this.#give(key))
    if (!(await answered(call, this.#clock, wait + CALL, late, wait < PARKED))) return
    if (holding.isGone) return this.#give(key)
    holding.locked.add(key)
    holding.since = this.#clock.now()
    holding.until = Math.min(holding.until, sentAt + certainLife(lease))
  }

  async #unlock(holding: Holding): Promise<void> {
    const keys = [...holding.locked]
    holding.locked.clear()
    holding.until = Infinity
    if (keys.length === 0) return
    try {
      await this.#mapLocks.reached()
    } catch {
      // Each ends with its lease.
      return
    }
    await Promise.all(keys.map(key => this.#give(key)))
  }

  /** An unlock that fails was of a lock that had been lost, or can't be helped: it ends with its lease. */
  async #give(key: string): Promise<void> {
    try {
      await answered(this.#mapLocks.unlock(key), this.#clock)
    } catch {
      // As said.
    }
  }
}

/** How long an answer may come after its wait: milliseconds. */
const CALL = 3000

function failureOf(calls: readonly PromiseSettledResult<unknown>[]): PromiseRejectedResult | undefined {
  return calls.find(call => call.status === 'rejected')
}
