import type { Clock, Timer } from '../clock.js'
import type { Engine } from '../engine/contract.js'
import { LostError } from '../errors.js'
import { TransientMap } from '../transient-map.js'
import { grantName, type Lease } from './lease.js'

/** A renewal is sent when this part of the lease is over, so that several may fail before the deadline. */
const RENEW_AFTER = 1 / 3
/** Leases due within this part of their length are renewed together with those due now. */
const TOGETHER = 1 / 20
/** After a renewal without a clear answer, this part of the lease passes until the next. */
const RETRY_AFTER = 1 / 12
/** Milliseconds. */
const MIN_RETRY = 10
/** Maximum number of leases that are spares, or were and are in use again. */
const MAX_SPARES = 64

/**
 * Keeps all leases of a box alive with one timer. Leases due at about the same time are renewed together. The keeper
 * decides how a lease stays alive; the locks decide which caller has it.
 */
export class LeaseKeeper {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #leases = new TransientMap<string, Lease>()
  /** Leases that were a spare at some time, in the order in which they first were. */
  readonly #spares = new TransientMap<Lease, true>()
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
      if (lease.isSpare) continue
      for (const { key } of lease.set.claims) inUse.set(grantName(key, lease.number), lease)
    }
    return inUse
  }

  /** Sets when to look at a lease next, after its deadline changed. */
  schedule(lease: Lease): void {
    lease.due = lease.renew ? lease.deadline - lease.duration * (1 - RENEW_AFTER) : lease.deadline
    this.#arm(Math.min(lease.due, this.#certainUntil()))
  }

  /** Stops keeping the lease alive. The timer stays as it is: setting it again for every release would cost more. */
  remove(lease: Lease): void {
    this.#leases.delete(lease.request.id)
    this.#spares.delete(lease)
  }

  /** Makes a released lease a spare for the next caller. When there are too many, the oldest is given back. */
  keepSpare(lease: Lease): void {
    lease.isSpare = true
    if (this.#spares.has(lease)) return
    this.#spares.set(lease, true)
    if (this.#spares.size <= MAX_SPARES) return
    for (const oldest of this.#spares.keys()) {
      this.#spares.delete(oldest)
      return this.#dropSpare(oldest)
    }
  }

  /** Whether the lease is lost. A passed deadline is found here even when no timer has run. */
  isLost(lease: Lease): boolean {
    if (!lease.loss) {
      const now = this.#clock.now()
      // mutant: timer-only-deadline
      if (now >= lease.deadline) this.lose(lease, `its lease of ${lease.duration} ms has expired`)
      else if (now >= this.#certainUntil()) this.lose(lease, 'its session may have expired')
    }
    return lease.loss !== undefined
  }

  /** How long the lease certainly lasts from now on, in milliseconds. */
  left(lease: Lease): number {
    return Math.max(Math.min(lease.deadline, this.#certainUntil()) - this.#clock.now(), 0)
  }

  /** Marks a lease as lost and notifies its user and its owner. A spare is only given back. */
  lose(lease: Lease, why: string, cause?: Error): void {
    if (lease.loss) return
    if (lease.isSpare) return lease.owner.dropSpare(lease)
    const isKnown = this.#leases.has(lease.request.id)
    this.remove(lease)
    const { title } = lease.set
    lease.loss = new LostError(`${title} is no longer held: ${why}`, {
      key: title,
      engine: this.#engine.name,
      ...(cause && { cause }),
    })
    lease.onLost?.()
    if (isKnown) lease.owner.leaseLost(lease)
  }

  /** The engine reports that this grant was taken away. @param cause what ended it, if it was not taken away */
  takenAway(id: string, cause?: Error): void {
    const lease = this.#leases.get(id)
    if (lease) this.lose(lease, cause?.message ?? 'it was released by force', cause)
  }

  /** The engine reports that a request waits for this grant. A spare is given back. */
  contended(id: string): void {
    const lease = this.#leases.get(id)
    if (!lease) return
    lease.isUncontended = false
    this.#dropSpare(lease)
  }

  /** Marks every lease in use as lost, because the session has ended. Spares are only given back. */
  loseAll(cause: Error): void {
    for (const lease of [...this.#leases.values()]) this.lose(lease, cause.message, cause)
  }

  /** Stops the timer. */
  stop(): void {
    this.#timer?.cancel()
    this.#timerAt = Infinity
  }

  #dropSpare(lease: Lease): void {
    if (lease.isSpare) lease.owner.dropSpare(lease)
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
      // A callback that was notified of a loss in this loop may have given other leases back.
      if (!this.#leases.has(lease.request.id)) continue
      if (now >= Math.min(lease.deadline, certainUntil)) {
        this.isLost(lease)
        continue
      }
      const isDue = lease.due <= now + lease.duration * TOGETHER
      if (isDue && lease.isSpare) {
        lease.owner.dropSpare(lease)
        continue
      }
      if (isDue && lease.renew) {
        // When to try again. The answer sets another time; it may come within the call.
        lease.due = Math.min(now + Math.max(lease.duration * RETRY_AFTER, MIN_RETRY), lease.deadline)
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
      if (!renewed) return this.lose(lease, 'the engine has revoked it')
      // mutant: late-renewal
      lease.deadline = Math.max(lease.deadline, sentAt + duration)
      this.schedule(lease)
    }
    const unclear = (): void => {
      lease.renewing = false
    }
    const answer = this.#engine.submit({ type: 'renew', request, number, lease: duration })
    if (answer instanceof Promise) answer.then(settle, unclear)
    else settle(answer)
  }
}
