import type { Tenant } from '../../base/lane.js'
import { isSameCost, type Cost } from '../../engine/limits/cost.js'
import { Callers, PermitWaiter } from '../callers.js'
import type { Terms } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { Permit } from '../permit.js'

/** A *try*: a caller that wants a permit now or not at all. It waits only for the engine's reply. */
export class TryWaiter extends PermitWaiter {
  /** The explanation in the engine's reply; undefined before that. */
  explanation: Explanation | undefined
  /** Whether it was requested again, because permits of the reply that refused it could not be used. */
  isRepeated = false

  constructor(
    cost: Cost,
    share: number,
    settle: (outcome: Permit | Promise<Permit>) => void,
    /** Whether it also wants an explanation. */
    readonly isDecision: boolean,
  ) {
    super(cost, share, 0, settle)
  }
}

/** Stands for the tenant of tries, which come after all waiters. No tenant has this name. */
const TRYING: Tenant = { name: '', weight: 1e-12, group: undefined }

/** Whether a try still waits for the reply with its explanation. */
export function isUnanswered(waiter: PermitWaiter): boolean {
  return waiter instanceof TryWaiter && waiter.isDecision && waiter.explanation === undefined
}

/** The callers of this process at one limiter of a box. */
export class BoxCallers extends Callers {
  readonly tries = new Set<TryWaiter>()
  /** Number of permits that the tries want. */
  #tried = 0

  override enter(waiter: PermitWaiter, terms: Terms, deadline: number): void {
    if (!(waiter instanceof TryWaiter)) return super.enter(waiter, terms, deadline)
    this.tries.add(waiter)
    this.#tried += waiter.n
    // A try overtakes no waiter of any tenant.
    super.enter(waiter, { ...terms, tenant: this.queue.hasTenants ? TRYING : undefined }, deadline)
  }

  override leave(waiter: PermitWaiter, isServed = false): void {
    if (!(waiter instanceof TryWaiter)) return super.leave(waiter, isServed)
    this.tries.delete(waiter)
    this.#tried -= waiter.n
    super.leave(waiter)
  }

  /** Number of callers that wait for their turn, not only for a reply. */
  get waiting(): number {
    return this.queue.callers - this.tries.size
  }

  /** Number of permits that these callers want, with other units than calls their share. */
  get wanted(): number {
    return this.queue.permits - this.#tried
  }

  /** Counts the callers that have their turns before a new one, and the permits that they want. */
  before(tenant: Tenant | undefined, n: number): { readonly waiting: number; readonly wanted: number } {
    if (!this.queue.hasTenants) return { waiting: this.waiting, wanted: this.wanted }
    const { callers, permits } = this.queue.beforeLast(tenant, n)
    return { waiting: callers, wanted: permits }
  }

  /** The first waiter that may get permits now. */
  get firstAnswered(): PermitWaiter | undefined {
    const { first } = this.queue
    if (!first || !isUnanswered(first)) return first
    // mutant: permits-wait-for-tries
    for (const waiter of this.queue) if (!isUnanswered(waiter)) return waiter
    return undefined
  }

  /**
   * Returns the first waiter that can use permits of one instant.
   * @param cost that of all of them. @param isBatch whether it may leave some of them to others.
   */
  firstFor(cost: Cost, isBatch: boolean): PermitWaiter | undefined {
    const mayUse = (waiter: PermitWaiter): boolean =>
      (isSameCost(waiter.cost, cost) || (isBatch && waiter.n < cost.n)) && !isUnanswered(waiter)
    const { first } = this.queue
    if (!first || mayUse(first)) return first
    for (const waiter of this.queue) if (mayUse(waiter)) return waiter
    return undefined
  }
}
