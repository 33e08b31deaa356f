import type { Clock, Timer } from '../clock.js'
import type { Engine, LockRequest } from '../engine/contract.js'
import { LostError } from '../errors.js'
import { TransientMap } from '../transient-map.js'
import type { ClaimSet } from './claims.js'

/**
 * What is known of a lease: granted; renewed since; lost for certain; or unknown, when a renewal had no clear answer.
 * An unknown lease keeps its old deadline: it is not yet lost, but it isn't renewed either.
 */
export type LeaseStatus = 'held' | 'renewed' | 'lost' | 'unknown'

/** One grant of the engine, with its deadline. Several local callers may use it one after the other. */
export class Lease {
  status: LeaseStatus = 'held'
  /** Set once, when the lease is lost, because the engine said so or because the deadline passed. */
  loss: LostError | undefined
  /** Tells its present user of its loss. */
  onLost: (() => void) | undefined
  /** When the keeper looks at it next: clock time. */
  due = 0
  renewing = false
  /** Whether the engine has said that no other request waits for it, and has not said `wanted` since. */
  isAlone = false
  /** Set once it was downgraded to read: others may hold the key beside it, so it is not handed on as a write grant. */
  downgraded = false
  /** The turn of its present local user: the lowest bits of the token. */
  turn = 0
  /** When that turn began, if grants or their ends have a listener: clock time. */
  grantedAt: number | undefined
  /** Set once this turn is to be taken away: the next caller on the same lease would lose it instead. */
  lastTurn = false
  /** Set while the lease is kept unused: gives it back. */
  unused: (() => void) | undefined

  /**
   * @param request what the engine knows it by; with shared claims after a downgrade.
   * @param number the engine's number of the grant, the upper part of its tokens.
   * @param duration how long it lasts without a renewal: milliseconds.
   * @param deadline until when it is certainly held: clock time, counted from before the request was sent.
   * @param renew whether the keeper renews it.
   * @param owner hands it out, and is told when it is lost.
   */
  constructor(
    public request: LockRequest,
    readonly set: ClaimSet,
    public number: number,
    public duration: number,
    public deadline: number,
    public renew: boolean,
    readonly owner: LeaseOwner,
  ) {}
}

/** Hands a lease out to local callers. */
export interface LeaseOwner {
  /** Called when the lease is lost. Its user may not have found out. */
  leaseLost(lease: Lease): void
}

/** A unique name for a grant: each number is given only once for a key. */
export function grantName(key: string, number: number): string {
  return `${number} ${key}`
}

/** A renewal is sent when this part of the lease is over, so that two may fail before the deadline. */
const RENEW_AFTER = 1 / 3
/** Leases due within this part of their length are renewed together with those due now. */
const TOGETHER = 1 / 20
/** After a renewal without a clear answer, this part of the lease passes until the next: milliseconds. */
const RETRY_AFTER = 1 / 12
const SHORTEST_RETRY = 10
/** At most so many leases are kept that may be unused. */
const MOST_KEPT = 64

/**
 * Keeps all leases of a box alive with one timer. Leases due at about the same time are renewed together. The keeper
 * decides how a lease stays alive; the locks decide which caller has it.
 */
export class LeaseKeeper {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #leases = new TransientMap<string, Lease>()
  /** Leases that were unused at some time, in the order in which they first were. */
  readonly #kept = new TransientMap<Lease, true>()
  #timer: Timer | undefined
  #timerAt = Infinity

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  /** Keeps the lease alive from now on. */
  add(lease: Lease): void {
    this.#leases.set(lease.request.id, lease)
    this.schedule(lease)
  }

  /** The leases in use in this box, by {@link grantName} with each of their keys. */
  inUse(): ReadonlyMap<string, Lease> {
    const inUse = new Map<string, Lease>()
    for (const lease of this.#leases.values()) {
      if (lease.unused) continue
      for (const { key } of lease.set.claims) inUse.set(grantName(key, lease.number), lease)
    }
    return inUse
  }

  /** Sets when to look at a lease next, after its deadline changed. */
  schedule(lease: Lease): void {
    lease.due = lease.renew ? lease.deadline - lease.duration * (1 - RENEW_AFTER) : lease.deadline
    this.#arm(Math.min(lease.due, this.#certainUntil()))
  }

  /** Stops keeping the lease alive. The timer stays as it is: setting it anew for every release would cost more. */
  remove(lease: Lease): void {
    this.#leases.delete(lease.request.id)
    this.#kept.delete(lease)
  }

  /** Keeps an unused lease for the next caller. When there are too many, the one that was kept first is given back. */
  keep(lease: Lease, giveBack: () => void): void {
    lease.unused = giveBack
    if (this.#kept.has(lease)) return
    this.#kept.set(lease, true)
    if (this.#kept.size <= MOST_KEPT) return
    for (const oldest of this.#kept.keys()) {
      this.#kept.delete(oldest)
      return oldest.unused?.()
    }
  }

  /** Whether the lease is lost. A passed deadline is found here even when no timer has run. */
  isLost(lease: Lease): boolean {
    if (!lease.loss) {
      const now = this.#clock.now()
      // fault: a passed deadline is found by a timer only
      if (now >= lease.deadline) this.lose(lease, `its lease of ${lease.duration} ms is over`)
      else if (now >= this.#certainUntil()) this.lose(lease, 'the session may have ended')
    }
    return lease.loss !== undefined
  }

  /** How long the lease certainly lasts from now on: milliseconds. */
  left(lease: Lease): number {
    return Math.max(Math.min(lease.deadline, this.#certainUntil()) - this.#clock.now(), 0)
  }

  /** Marks a lease as lost and tells its user and its owner. An unused one is only given back. */
  lose(lease: Lease, why: string, cause?: Error): void {
    if (lease.loss) return
    if (lease.unused) return lease.unused()
    const inUse = this.#leases.has(lease.request.id)
    this.remove(lease)
    lease.status = 'lost'
    const { title } = lease.set
    lease.loss = new LostError(`${title} is not held any more: ${why}`, {
      key: title,
      engine: this.#engine.name,
      ...(cause && { cause }),
    })
    lease.onLost?.()
    if (inUse) lease.owner.leaseLost(lease)
  }

  /** The engine says that this grant was taken away. @param cause what ended it, if it was not taken away */
  taken(id: string, cause?: Error): void {
    const lease = this.#leases.get(id)
    if (lease) this.lose(lease, cause?.message ?? 'it was taken away', cause)
  }

  /** The engine says that a request waits for this grant: it is given back when unused. */
  wanted(id: string): void {
    const lease = this.#leases.get(id)
    if (!lease) return
    lease.isAlone = false
    lease.unused?.()
  }

  /** Marks every lease in use as lost, because the session has ended. Unused ones are only given back. */
  loseAll(why: string): void {
    for (const lease of [...this.#leases.values()]) this.lose(lease, why)
  }

  /** Stops the timer. */
  stop(): void {
    this.#timer?.cancel()
    this.#timerAt = Infinity
  }

  #certainUntil(): number {
    return this.#engine.certainUntil?.() ?? Infinity
  }

  #arm(at: number): void {
    if (at >= this.#timerAt) return
    this.#timer?.cancel()
    this.#timerAt = at
    // The timer does not keep a finished process alive: nothing is left in it to use the grant.
    this.#timer = this.#clock.after(at - this.#clock.now(), () => this.#look(), false)
  }

  #look(): void {
    this.#timerAt = Infinity
    const now = this.#clock.now()
    const certainUntil = this.#certainUntil()
    let next = Infinity
    for (const lease of [...this.#leases.values()]) {
      // A callback that was told of a loss in this loop may have given other leases back.
      if (!this.#leases.has(lease.request.id)) continue
      if (now >= Math.min(lease.deadline, certainUntil)) {
        this.isLost(lease)
        continue
      }
      if (lease.unused && lease.due <= now) {
        lease.unused()
        continue
      }
      if (lease.renew && lease.due <= now + lease.duration * TOGETHER) {
        // When to try again. The answer sets another time; it may come within the call.
        lease.due = Math.min(now + Math.max(lease.duration * RETRY_AFTER, SHORTEST_RETRY), lease.deadline)
        if (!lease.renewing) this.#renew(lease, now)
      }
      if (!lease.loss) next = Math.min(next, lease.due, certainUntil)
    }
    if (next < Infinity) this.#arm(next)
  }

  #renew(lease: Lease, sentAt: number): void {
    const { request, number, duration } = lease
    lease.renewing = true
    const settle = (renewed: boolean): void => {
      lease.renewing = false
      // The lease may have got a new number meanwhile, or may have been given back.
      if (!this.#leases.has(request.id) || lease.number !== number) return
      if (!renewed) return this.lose(lease, 'the engine has given it up')
      lease.status = 'renewed'
      // fault: a renewal counts from its answer
      lease.deadline = Math.max(lease.deadline, sentAt + duration)
      this.schedule(lease)
    }
    const unclear = (): void => {
      lease.renewing = false
      if (this.#leases.has(request.id)) lease.status = 'unknown'
    }
    const answer = this.#engine.submit({ type: 'renew', request, number, lease: duration })
    if (answer instanceof Promise) answer.then(settle, unclear)
    else settle(answer)
  }
}
