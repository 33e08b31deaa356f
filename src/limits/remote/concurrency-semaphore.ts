import type { Clock } from '../../base/clock.js'
import type { Tenant } from '../../base/lane.js'
import type { Grant } from '../../core/grant.js'
import type { ClaimSetLock } from '../../core/lock.js'
import { IndeterminateError, UnavailableError, type Holder } from '../../base/errors.js'
import type { Waiters } from '../../base/waiters.js'
import type { Cost } from '../../engine/limits/cost.js'
import { Callers, PermitWaiter, type CallersOwner } from '../callers.js'
import type { CostRules } from '../costs.js'
import type { Terms } from '../limit-options.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { RETRY } from './pace.js'

/** The source of slots. */
interface SemaphoreSource {
  readonly clock: Clock
  /** The semaphore of a box. Each of its grants is a slot. */
  readonly lock: ClaimSetLock
  /** The lease of a slot, in milliseconds. */
  readonly lease: number
  readonly errors: LimiterErrors
  /** Creates the error of a waiter whose wait has passed. @param wait milliseconds. @param holder a known holder. */
  readonly late: (wait: number, holder: Holder | undefined) => Error
  /** Whether waiters keep waiting while the engine is unreachable. */
  readonly waitsOn: boolean
  /** Called when the engine is unreachable. */
  readonly failed: (error: Error) => void
  /** Checks whether the engine is unreachable, which a waiter for a slot does not notice otherwise. */
  readonly look: () => Promise<void>
}

/** Maximum number of slots that are requested at once. */
const MAX_ASKING = 128

/** A caller that waits for a slot. */
type SlotWaiter = PermitWaiter<void>

/**
 * The semaphore of a limiter with a concurrency. Each call in progress has one slot of it, regardless of the number of
 * its permits. The waiters of this process are in one queue, by priority. For each of them it requests a slot from the
 * box, up to {@link MAX_ASKING}. The engine serves processes in the order of their requests.
 */
export class ConcurrencySemaphore implements CallersOwner {
  readonly #source: SemaphoreSource
  readonly #callers: Callers<void>
  readonly #waiters: Waiters<SlotWaiter>
  readonly #inUse: Grant[] = []
  /** Aborts the current requests. */
  readonly #asking: AbortController[] = []
  /** Clock time of the next check whether the engine is unreachable. */
  #lookAt = Infinity

  constructor(source: SemaphoreSource) {
    this.#source = source
    this.#callers = new Callers(source.clock, this, source.errors)
    this.#waiters = this.#callers.queue
  }

  /** Number of waiters. */
  get callers(): number {
    return this.#waiters.callers
  }

  /** Number of waiters of a tenant, or of its group; 0 without one. */
  callersOf(tenant: Tenant | undefined): number {
    return this.#waiters.callersOf(tenant)
  }

  /**
   * Counts the waiters ahead of a new caller, and what the permits of the rate limit cost that they want.
   * @param share that of the new caller.
   */
  before(tenant: Tenant | undefined, share: number): { readonly callers: number; readonly cost: Cost } {
    const { callers, permits } = this.#waiters.beforeLast(tenant, share)
    return { callers, cost: this.#callers.costOf(permits) }
  }

  /** Number of slots of this process in use. */
  get running(): number {
    return this.#inUse.length
  }

  get blank(): boolean {
    return this.callers === 0 && this.running === 0 && this.#asking.length === 0
  }

  /** Acquires a slot if one is available now. Rejects as `Lock.tryAcquire` does. */
  async tryAcquire(): Promise<boolean> {
    return !this.#waiters.first && (await this.takeOrGive()) === 'taken'
  }

  /**
   * Requests a slot that is available now, and gives it to the first waiter. Without a waiter, the caller has taken it.
   * Rejects as `Lock.tryAcquire` does.
   */
  async takeOrGive(): Promise<'taken' | 'given' | 'none'> {
    const { lock, lease } = this.#source
    // A request of its own: otherwise one that is under way for a waiter would count as if no slot were available.
    const grant = await lock.tryAcquire({ lease, ownRequest: true }).catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
      throw error
    })
    if (!grant) return 'none'
    const isFree = !this.#waiters.first
    if (isFree) this.#inUse.push(grant)
    else this.#give(grant)
    return isFree ? 'taken' : 'given'
  }

  /** Waits for a slot. Rejects as `Lock.acquire` does. @param share that of the cost. @param deadline clock time. */
  acquire(cost: Cost, share: number, terms: Terms, deadline: number): Promise<void> {
    return new Promise((settle, reject) => {
      if (terms.signal?.aborted) return reject(this.#source.errors.aborted(terms.signal))
      const waiter: SlotWaiter = new PermitWaiter(cost, share, 0, settle)
      this.#callers.enter(waiter, terms, deadline)
      this.#waiters.setTimer()
      // While the engine is unreachable, only the first waiter and the timer send requests.
      if (this.callers === 1 || this.#asking.length > 0) this.#askForAll()
    })
  }

  /** Releases a slot. */
  release(): void {
    // A lost slot no longer counts in the engine, but the others do. So a lost one is released first. If none is lost,
    // the index -1 takes the newest slot.
    const lost = this.#inUse.findIndex(grant => grant.expiresIn() === 0)
    this.#release(this.#inUse.splice(lost, 1)[0]!)
  }

  /** Rejects the waiters that want more permits than the rate limit can ever grant together. */
  refuseAbove(costs: CostRules): void {
    this.#callers.refuseAbove(costs)
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    this.#callers.refuseAll(error)
  }

  timeOver(now: number): void {
    const { late, lock } = this.#source
    while (this.#waiters.earliestDeadline <= now) {
      const waiter = this.#waiters.mostUrgent!
      this.#callers.refuse(waiter, late(waiter.waitLimit!.wait, lock.knownHolder()))
    }
    if (!this.#waiters.first) return
    if (now < this.#lookAt) return this.#waiters.checkAt(this.#lookAt, now)
    this.#lookLater(now)
    if (this.#asking.length > 0) void this.#source.look()
    else this.#askForAll()
  }

  gaveUp(): void {
    while (this.#asking.length > this.callers) this.#asking.pop()!.abort()
  }

  /** Requests a slot for each waiter. */
  #askForAll(): void {
    while (this.#asking.length < Math.min(this.callers, MAX_ASKING)) void this.#ask()
  }

  async #ask(): Promise<void> {
    const asking = new AbortController()
    const { signal } = asking
    this.#asking.push(asking)
    this.#lookLater(this.#source.clock.now())
    let grant: Grant | undefined
    let isAway = false
    try {
      grant = await this.#source.lock.acquire({ signal, lease: this.#source.lease })
    } catch (error) {
      isAway = !signal.aborted && this.#failed(error as Error)
    }
    const index = this.#asking.indexOf(asking)
    if (index !== -1) this.#asking.splice(index, 1)
    if (grant) this.#give(grant)
    if (!isAway) this.#askForAll()
  }

  /** Returns whether waiters keep waiting until the engine is back. */
  #failed(error: Error): boolean {
    const isAway = isOutage(error)
    if (isAway) this.#source.failed(error)
    if (isAway && this.#source.waitsOn) {
      this.#lookLater(this.#source.clock.now())
      return true
    }
    this.refuseAll(error)
    return false
  }

  #lookLater(now: number): void {
    this.#lookAt = now + RETRY
    this.#waiters.checkAt(this.#lookAt, now)
  }

  /** Gives a slot to the first waiter, or releases it. */
  #give(grant: Grant): void {
    const waiter = this.#waiters.first
    if (!waiter) return this.#release(grant)
    this.#callers.leave(waiter, true)
    this.#inUse.push(grant)
    // There may be one request too many now, because `takeOrGive` sends others.
    this.gaveUp()
    waiter.settle()
  }

  #release(grant: Grant): void {
    // A slot that can't be released ends when its lease expires. A lost one has ended already.
    grant.release().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
    })
  }
}

/** Whether an error means that the engine is unreachable. */
export function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
