import { onAbort } from './abort-task.js'
import type { Clock, Timer } from './clock.js'
import { Deadlines } from './deadlines.js'
import { Lane, type Counts, type Tenant, type Waiter } from './lane.js'
import { Tenants, type TenantInTurn } from './tenants.js'

export interface WaitersOwner<W extends Waiter> {
  /**
   * Called at the time of the next check or of a deadline. No timer is set then.
   * @param now clock time, at least the time for which the timer was set, even if the clock rounds it down.
   */
  timeOver(now: number): void
  aborted(waiter: W, signal: AbortSignal): void
}

/** Minimum delay of a timer, and of a wait, in milliseconds. A shorter one could be lost in rounding. */
export const MIN_DELAY = 0.001

/**
 * The queue of the local callers that wait for a lock or for permits: by priority, then in order of arrival; if some
 * have a tenant, the tenants take turns. The costs of entering and leaving do not depend on the place. There is one
 * timer for all, for the earliest deadline or the owner's next check. While callers wait, the timer keeps the process
 * alive.
 */
export class Waiters<W extends Waiter> {
  readonly #clock: Clock
  readonly #owner: WaitersOwner<W>
  /** The waiters without a tenant. */
  readonly #lane = new Lane()
  /** All waiters; undefined unless one of them has come with a tenant. */
  #tenants: Tenants | undefined
  #deadlines: Deadlines<W> | undefined
  /** Number of waiters with a deadline or a signal. */
  #limited = 0
  /** The time of the owner's next check: clock time. */
  #checkAt = Infinity
  #timer: Timer | undefined
  #timerAt = Infinity
  #timerKeepsAlive = false
  callers = 0
  /** Number of permits that the waiters want. */
  permits = 0

  constructor(clock: Clock, owner: WaitersOwner<W>) {
    this.#clock = clock
    this.#owner = owner
  }

  get first(): W | undefined {
    return (this.#tenants ?? this.#lane).first as W | undefined
  }

  /** The waiter that has its turn after `place` others. */
  at(place: number): W | undefined {
    if (place === 0) return this.first
    for (const waiter of this) if (place-- === 0) return waiter
    return undefined
  }

  /** Whether a waiter has come with a tenant since the queue was empty. */
  get hasTenants(): boolean {
    return this.#tenants !== undefined
  }

  /** All waiters, in the order of their turns. The loop must not add or remove any. */
  *[Symbol.iterator](): Generator<W, void, void> {
    if (this.#tenants) {
      yield* this.#tenants as Iterable<W>
      return
    }
    for (let waiter = this.#lane.first; waiter; waiter = this.#lane.after(waiter)) yield waiter as W
  }

  /**
   * Counts the waiters ahead of a new caller; with tenants, perhaps too few.
   * @param n number of permits that it wants. @param isEstimate with tenants, whether it may also be too many.
   */
  before(priority: number, tenant?: Tenant, n = 1, isEstimate = false): Counts {
    if (tenant && this.callers > 0) this.#tenants ??= new Tenants(this.#lane)
    return this.#tenants?.before(tenant, priority, n, isEstimate) ?? this.#lane.before(priority)
  }

  /**
   * The tenants and groups with waiters, and their weights; undefined without tenants.
   * @param max maximum number; the others are one without a name.
   */
  waitingTenants(max: number): TenantInTurn[] | undefined {
    const waiting = this.#tenants?.waiting(max)
    return waiting && waiting.length > 0 ? waiting : undefined
  }

  /** Estimates the number of waiters ahead of a new caller that comes after all others of its tenant. */
  beforeLast(tenant: Tenant | undefined, n: number): Counts {
    return this.before(-Infinity, tenant, n, true)
  }

  /** Number of waiters of a tenant, or of its group; 0 without one. */
  callersOf(tenant: Tenant | undefined): number {
    return (tenant && this.#tenants?.callersOf(tenant)) ?? 0
  }

  add(waiter: W, priority = 0, tenant?: Tenant): void {
    if (tenant) this.#tenants ??= new Tenants(this.#lane)
    const lane = this.#tenants?.laneOf(tenant) ?? this.#lane
    lane.add(waiter, priority)
    this.callers++
    this.permits += waiter.n
    this.#tenants?.changed(lane, waiter, 1)
  }

  /**
   * Limits the wait by a deadline and a signal. The caller must call `setTimer` afterwards, unless the waiter leaves
   * before.
   * @param wait milliseconds; Infinity for none. @param deadline the end of the wait: clock time.
   */
  limit(waiter: W, wait: number, deadline: number, signal: AbortSignal | undefined): void {
    if (deadline === Infinity && !signal) return
    const letGo = signal && onAbort(signal, () => this.#owner.aborted(waiter, signal))
    waiter.waitLimit = { wait, signal, deadline, letGo }
    this.#limited++
    if (deadline !== Infinity) (this.#deadlines ??= new Deadlines()).add(waiter)
  }

  /** Removes a waiter that gets its permits. */
  take(waiter: W): void {
    this.#tenants?.took(waiter.rank!.lane, waiter.n)
    this.remove(waiter)
  }

  remove(waiter: W): void {
    const { rank, waitLimit } = waiter
    const { lane } = rank!
    lane.remove(waiter)
    this.callers--
    this.permits -= waiter.n
    this.#tenants?.changed(lane, waiter, -1)
    if (this.callers === 0) this.#tenants = undefined
    if (waitLimit) {
      waitLimit.letGo?.()
      if (waitLimit.deadline !== Infinity) this.#deadlines!.left()
      this.#limited--
    }
    if (this.callers === 0) this.#checkAt = Infinity
    if (this.#limited === 0 && this.#checkAt === Infinity) this.#cancelTimer()
  }

  /** Sets the owner's next check: clock time; Infinity for none. @param now clock time. */
  checkAt(time: number, now: number): void {
    this.#checkAt = time
    this.#setTimer(now)
  }

  /** Sets the timer, unless it is early enough for all deadlines. @param now clock time. */
  setTimer(now?: number): void {
    // A timer for a waiter that has left stays: a new timer for each would cost more than one unnecessary check.
    if (!this.#timer || this.earliestDeadline < this.#timerAt) this.#setTimer(now)
  }

  /** The earliest deadline of all waiters; Infinity if there is none. */
  get earliestDeadline(): number {
    return this.#deadlines?.earliest ?? Infinity
  }

  get mostUrgent(): W | undefined {
    return this.#deadlines?.first()
  }

  #setTimer(now?: number): void {
    const at = Math.min(this.#checkAt, this.earliestDeadline)
    const keepsAlive = this.callers > 0
    if (this.#timer && at === this.#timerAt && keepsAlive === this.#timerKeepsAlive) return
    this.#cancelTimer()
    // Some signals, such as those of `AbortSignal.timeout`, do not keep the process alive, so an endless timer does.
    if (at === Infinity && this.#limited === 0) return
    this.#timerAt = at
    this.#timerKeepsAlive = keepsAlive
    const delay = Math.max(at - (now ?? this.#clock.now()), MIN_DELAY)
    this.#timer = this.#clock.after(delay, () => this.#timeOver(), keepsAlive)
  }

  #cancelTimer(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = Infinity
  }

  #timeOver(): void {
    const now = Math.max(this.#clock.now(), this.#timerAt)
    this.#cancelTimer()
    this.#checkAt = Infinity
    this.#owner.timeOver(now)
  }
}
