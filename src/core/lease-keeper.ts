import type { Clock, Timer } from '../base/clock.js'
import type { Awaitable, Engine, Renew } from '../engine/contract.js'
import { LostError } from '../base/errors.js'
import { TransientMap } from '../base/transient-map.js'
import { grantName, type Lease } from './lease.js'

/** A lease is renewed after this part of its duration, so that several renewals may fail before the deadline. */
const RENEW_AFTER = 1 / 3
/** Leases that are due within this part of their duration are renewed together with those that are due now. */
const BATCH_WITHIN = 1 / 20
/** A renewal that failed, or has no answer yet, is retried after this part of the duration. */
const RETRY_AFTER = 1 / 12
/** Minimum delay of a retry, in milliseconds. */
const MIN_RETRY_DELAY = 10
/** Minimum time between two questions to the engine whether a grant is still held, in milliseconds. */
const DOUBT_PAUSE = 100
/** Maximum number of leases that are spares, or were spares and are in use again. */
const MAX_SPARES = 64

/**
 * Renews the leases of a box, and detects their loss, with one timer. Leases that are due at about the same time are
 * renewed together. The local queues decide which caller uses a lease.
 */
export class LeaseKeeper {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #send: (renewal: Renew) => Awaitable<boolean>
  /** By request ID. */
  readonly #leases = new TransientMap<string, Lease>()
  /** Leases that are or were spares, in the order in which they first became one. */
  readonly #spares = new TransientMap<Lease, true>()
  #timer: Timer | undefined
  #timerAt = Infinity

  constructor(engine: Engine, clock: Clock, send: (renewal: Renew) => Awaitable<boolean>) {
    this.#engine = engine
    this.#clock = clock
    this.#send = send
  }

  add(lease: Lease): void {
    this.#leases.set(lease.request.id, lease)
    this.schedule(lease)
  }

  /** The leases in use in this box, by the {@link grantName} of each of their keys. */
  inUse(): ReadonlyMap<string, Lease> {
    const inUse = new Map<string, Lease>()
    for (const lease of this.#leases.values()) {
      if (lease.state === 'spare') continue
      for (const { key } of lease.set.claims) inUse.set(grantName(key, lease.number), lease)
    }
    return inUse
  }

  /** Sets when a lease is due, after its deadline has changed. */
  schedule(lease: Lease): void {
    lease.due = lease.renew ? lease.deadline - lease.duration * (1 - RENEW_AFTER) : lease.deadline
    if (lease.isDoubted) lease.due = Math.min(lease.due, lease.askedAt + DOUBT_PAUSE)
    this.#arm(Math.min(lease.due, this.#certainUntil()))
  }

  /**
   * Asks the engine whether it still has the grant, because a hint says that it does not. Any client may have sent the
   * hint, so it neither ends a lease nor causes more than ten questions a second.
   */
  verify(lease: Lease): void {
    lease.isDoubted = true
    const now = this.#clock.now()
    const at = lease.askedAt + DOUBT_PAUSE
    if (now >= at && !lease.renewing) return this.#renew(lease, now)
    lease.due = Math.min(lease.due, Math.max(now, at))
    this.#arm(lease.due)
  }

  /** Stops keeping the lease. The timer stays as it is: setting it again for each release would cost more. */
  remove(lease: Lease): void {
    this.#leases.delete(lease.request.id)
    this.#spares.delete(lease)
  }

  /**
   * Makes a released lease a spare for the next caller. If there are too many spares, removes the oldest from their
   * list, and releases it unless it is in use again.
   */
  keepSpare(lease: Lease): void {
    lease.state = 'spare'
    if (this.#spares.has(lease)) return
    this.#spares.set(lease, true)
    if (this.#spares.size <= MAX_SPARES) return
    for (const oldest of this.#spares.keys()) {
      this.#spares.delete(oldest)
      return this.#dropSpare(oldest)
    }
  }

  /** Whether the lease is lost. Checks the deadline itself, so it is right even if no timer has run. */
  isLost(lease: Lease): boolean {
    if (!lease.loss) {
      const now = this.#clock.now()
      // mutant: timer-only-deadline
      if (now >= lease.deadline) this.lose(lease, `its lease of ${lease.duration} ms has expired`)
      else if (now >= this.#certainUntil()) this.lose(lease, 'its session may have expired')
    }
    return lease.loss !== undefined
  }

  /** Returns the time for which the lease is certainly held without a renewal, in milliseconds. */
  left(lease: Lease): number {
    return Math.max(Math.min(lease.deadline, this.#certainUntil()) - this.#clock.now(), 0)
  }

  /** Marks a lease as lost, and notifies its users and its owner. A spare has no user and is released. */
  lose(lease: Lease, why: string, cause?: Error): void {
    if (lease.loss) return
    if (lease.state === 'spare') return lease.owner.dropSpare(lease)
    this.remove(lease)
    const { title } = lease.set
    lease.loss = new LostError(`${title} is no longer held: ${why}`, {
      key: title,
      engine: this.#engine.name,
      ...(cause && { cause }),
    })
    for (const user of lease.users) user.lost()
    // Otherwise its owner has ended it already, or does so after the reply.
    if (lease.state === 'used') lease.owner.leaseLost(lease)
  }

  /**
   * Handles the engine's hint that a grant was lost.
   * @param cause why, if the engine has found it out by itself; without one the hint may be false.
   */
  onLostHint(id: string, cause?: Error): void {
    const lease = this.#leases.get(id)
    if (!lease || this.isLost(lease)) return
    if (cause) this.lose(lease, cause.message, cause)
    else if (lease.state === 'spare') this.#dropSpare(lease)
    // mutant: hint-loses-grant
    else this.verify(lease)
  }

  /** Handles the engine's hint that another request waits for this grant. A spare is released. */
  contended(id: string): void {
    const lease = this.#leases.get(id)
    if (!lease) return
    // mutant: contended-ignored
    lease.isUncontended = false
    this.#dropSpare(lease)
  }

  /** Marks every lease in use as lost, because the session has ended, and releases the spares. */
  loseAll(cause: Error): void {
    for (const lease of [...this.#leases.values()]) this.lose(lease, cause.message, cause)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timerAt = Infinity
  }

  #dropSpare(lease: Lease): void {
    if (lease.state === 'spare') lease.owner.dropSpare(lease)
  }

  #certainUntil(): number {
    return this.#engine.certainUntil?.() ?? Infinity
  }

  #arm(at: number): void {
    if (at >= this.#timerAt) return
    this.#timer?.cancel()
    this.#timerAt = at
    // The timer does not keep a finished process alive: nothing in it uses the grants any more.
    this.#timer = this.#clock.after(at - this.#clock.now(), () => this.#checkAll(), false)
  }

  #checkAll(): void {
    this.#timerAt = Infinity
    const now = this.#clock.now()
    const certainUntil = this.#certainUntil()
    let next = Infinity
    for (const lease of [...this.#leases.values()]) {
      // A user that this loop has notified of a loss may have released other leases.
      if (!this.#leases.has(lease.request.id)) continue
      if (now >= Math.min(lease.deadline, certainUntil)) {
        this.isLost(lease)
        continue
      }
      const isDue = lease.due <= now + lease.duration * BATCH_WITHIN
      if (isDue && lease.state === 'spare') {
        lease.owner.dropSpare(lease)
        continue
      }
      if (isDue && (lease.renew || lease.isDoubted || lease.renewing)) {
        if (lease.renewing) lease.due = this.#retryAt(lease, now)
        else this.#renew(lease, now)
      }
      if (!lease.loss) next = Math.min(next, lease.due, certainUntil)
    }
    if (next < Infinity) this.#arm(next)
  }

  /** When to ask again, unless an answer sets another time. */
  #retryAt(lease: Lease, now: number): number {
    return Math.min(now + Math.max(lease.duration * RETRY_AFTER, MIN_RETRY_DELAY), lease.deadline)
  }

  /** Renews a lease. One that is not to be renewed keeps its deadline: the engine is asked only whether it is held. */
  #renew(lease: Lease, sentAt: number): void {
    const { request, number, renew, isDoubted } = lease
    const duration = renew ? lease.duration : Math.max(lease.deadline - sentAt, 1)
    lease.renewing = true
    lease.isDoubted = false
    lease.askedAt = sentAt
    // Set before sending, because an engine in this process replies within the call.
    lease.due = this.#retryAt(lease, sentAt)
    const settle = (renewed: boolean): void => {
      lease.renewing = false
      // The lease may have been extended under a new number, or released, in the meantime.
      // mutant: stale-renewal
      if (!this.#leases.has(request.id) || lease.number !== number) return
      if (!renewed) {
        const isForced = isDoubted || lease.isDoubted
        return this.lose(lease, isForced ? 'it was released by force' : 'the engine has revoked it')
      }
      // mutant: late-renewal
      if (renew) lease.deadline = Math.max(lease.deadline, sentAt + duration)
      this.schedule(lease)
    }
    const failed = (): void => {
      // mutant: failed-renewal-stays
      lease.renewing = false
      lease.isDoubted ||= isDoubted
    }
    const answer = this.#send({ type: 'renew', request, number, lease: duration })
    if (answer instanceof Promise) {
      this.#arm(lease.due)
      answer.then(settle, failed)
    } else settle(answer)
  }
}
