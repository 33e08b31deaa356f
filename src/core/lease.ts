import type { Clock, Timer } from '../clock.js'
import type { Engine } from '../engine/contract.js'
import { LostError } from '../errors.js'
import { TransientMap } from '../transient-map.js'
import type { ClaimSet } from './claims.js'

/**
 * What is known of a lease: granted; renewed since; lost for certain; or unknown, when a renewal had no clear answer.
 * Unknown keeps the old deadline: it is not yet lost, but it isn't renewed either.
 */
export type LeaseStatus = 'held' | 'renewed' | 'lost' | 'unknown'

/** One grant of the engine, with its lease. Several local callers may use it one after the other. */
export class Lease {
  status: LeaseStatus = 'held'
  /** Set once, when the lease is lost: by the engine's word or because the deadline passed. */
  loss: LostError | undefined
  /** Who uses it just now and wants to know of its loss. */
  onLost: (() => void) | undefined
  /** When the keeper looks at it next: clock time. */
  due = 0
  renewing = false
  /** Whether somebody waits for it in the engine, as far as the engine tells. */
  contested = false
  /** Whether the engine has said that nobody else waits for it, and that it tells as soon as somebody does. */
  isAlone = false
  /** Set once a write grant was made a read grant: others may be beside it, so it is not handed on as a write grant. */
  downgraded = false
  /** Which of its local users has it: the lowest bits of the token. */
  turn = 0
  /** When that user got it, if grants or their ends have a listener: clock time. */
  grantedAt: number | undefined
  /** Set once this turn is to be taken away: whoever came next on the same hold would lose it instead. */
  lastTurn = false
  /** Set while nobody uses it: gives it back. */
  unused: (() => void) | undefined

  /**
   * @param number the engine's number of the grant, the upper part of its tokens.
   * @param duration how long it outlives silence: milliseconds.
   * @param deadline until when it is certainly held: clock time, counted from before the request was sent.
   * @param renew whether the keeper renews it.
   * @param label what the engine shows with it.
   * @param owner who hands it out, and is told when it is lost.
   */
  constructor(
    readonly id: string,
    readonly set: ClaimSet,
    public number: number,
    public duration: number,
    public deadline: number,
    public renew: boolean,
    public label: string | undefined,
    readonly owner: LeaseOwner,
  ) {}
}

/** Who hands a hold out. */
export interface LeaseOwner {
  /** It is lost, although its user may not have found out. */
  leaseLost(lease: Lease): void
}

/** What tells a grant from all others: a number is given once for each key. */
export function grantName(key: string, number: number): string {
  return `${number} ${key}`
}

/** Renewals go out when this part of the lease is over, so that two may fail before the deadline. */
const RENEW_AFTER = 1 / 3
/** Leases due within this part of their length travel with those due now. */
const TOGETHER = 1 / 20
/** After a renewal without a clear answer, this part of the lease passes until the next: milliseconds. */
const RETRY_AFTER = 1 / 12
const SHORTEST_RETRY = 10
/** So many holds may have been kept although nobody used them. */
const MOST_KEPT = 64

/**
 * Keeps all leases of a box alive with one timer: those due at about the same time are renewed together. It apart from
 * the locks decides how a grant stays alive; the locks decide who has it.
 */
export class LeaseKeeper {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #leases = new TransientMap<string, Lease>()
  /** Those that nobody used at some time, the longest known first. */
  readonly #kept = new TransientMap<Lease, true>()
  #timer: Timer | undefined
  #timerAt = Infinity

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  /** Looks after the hold from now on. */
  add(lease: Lease): void {
    this.#leases.set(lease.id, lease)
    this.schedule(lease)
  }

  /** What somebody in this box has just now, by {@link grantName} with each of its keys. */
  inUse(): ReadonlyMap<string, Lease> {
    const inUse = new Map<string, Lease>()
    for (const lease of this.#leases.values()) {
      if (lease.unused) continue
      for (const { key } of lease.set.claims) inUse.set(grantName(key, lease.number), lease)
    }
    return inUse
  }

  /** Sets anew when to look at a hold, after its deadline changed. */
  schedule(lease: Lease): void {
    lease.due = lease.renew ? lease.deadline - lease.duration * (1 - RENEW_AFTER) : lease.deadline
    this.#arm(Math.min(lease.due, this.#certainUntil()))
  }

  /** Looks after it no longer. The timer stays as it is: setting it anew for every release would cost more. */
  remove(lease: Lease): void {
    this.#leases.delete(lease.id)
    this.#kept.delete(lease)
  }

  /** Keeps a hold that nobody uses for the next caller; the longest known of too many is given back. */
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

  /** Whether the hold is lost by now; a passed deadline is found here even when no timer has run. */
  isLost(lease: Lease): boolean {
    if (!lease.loss) {
      const now = this.#clock.now()
      if (now >= lease.deadline) this.lose(lease, `its lease of ${lease.duration} ms is over`)
      else if (now >= this.#certainUntil()) this.lose(lease, 'the session may have ended')
    }
    return lease.loss !== undefined
  }

  /** How long the hold is certainly held from now on: milliseconds. */
  left(lease: Lease): number {
    return Math.max(Math.min(lease.deadline, this.#certainUntil()) - this.#clock.now(), 0)
  }

  /** Marks a hold as lost and tells its user and its owner; one that nobody uses is only given up. */
  lose(lease: Lease, why: string, cause?: Error): void {
    if (lease.loss) return
    if (lease.unused) return lease.unused()
    const inUse = this.#leases.has(lease.id)
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

  /** The engine says that this grant was taken away. @param cause what else has ended it */
  taken(id: string, cause?: Error): void {
    const lease = this.#leases.get(id)
    if (lease) this.lose(lease, cause?.message ?? 'it was taken away', cause)
  }

  /** The engine says that somebody waits for this grant: it is given back as soon as nobody uses it. False: unknown. */
  wanted(id: string): boolean {
    const lease = this.#leases.get(id)
    if (!lease) return false
    lease.contested = true
    lease.unused?.()
    return true
  }

  /** Every hold in use is lost: the session has ended. What nobody uses was no more than kept. */
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
    // Not a reason for a finished process to stay alive: then nobody is left to use the grant.
    this.#timer = this.#clock.after(at - this.#clock.now(), () => this.#look(), false)
  }

  #look(): void {
    this.#timerAt = Infinity
    const now = this.#clock.now()
    const certainUntil = this.#certainUntil()
    let next = Infinity
    for (const lease of [...this.#leases.values()]) {
      // Whoever was told of a loss just now may have given others back.
      if (!this.#leases.has(lease.id)) continue
      if (now >= Math.min(lease.deadline, certainUntil)) {
        this.isLost(lease)
        continue
      }
      if (lease.unused && lease.due <= now) {
        lease.unused()
        continue
      }
      if (lease.renew && lease.due <= now + lease.duration * TOGETHER) {
        // Unless the answer says otherwise, which may come within the call.
        lease.due = Math.min(now + Math.max(lease.duration * RETRY_AFTER, SHORTEST_RETRY), lease.deadline)
        if (!lease.renewing) this.#renew(lease, now)
      }
      if (!lease.loss) next = Math.min(next, lease.due, certainUntil)
    }
    if (next < Infinity) this.#arm(next)
  }

  #renew(lease: Lease, sentAt: number): void {
    const { id, number, duration } = lease
    lease.renewing = true
    const settle = (renewed: boolean): void => {
      lease.renewing = false
      // The answer may be to a number that was passed on meanwhile, or come after the hold was given back.
      if (!this.#leases.has(id) || lease.number !== number) return
      if (!renewed) return this.lose(lease, 'the engine has given it up')
      lease.status = 'renewed'
      lease.deadline = Math.max(lease.deadline, sentAt + duration)
      this.schedule(lease)
    }
    const unclear = (): void => {
      lease.renewing = false
      if (this.#leases.has(id)) lease.status = 'unknown'
    }
    const answer = this.#engine.submit({ type: 'renew', id, number, lease: duration })
    if (answer instanceof Promise) answer.then(settle, unclear)
    else settle(answer)
  }
}
