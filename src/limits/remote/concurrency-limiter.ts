import { BusyError } from '../../base/errors.js'
import type { Tenant } from '../../base/lane.js'
import { concurrencyKey } from '../../base/reserved-keys.js'
import type { BoxTerms } from './box-limiter-options.js'
import type { Cost } from '../../engine/limits/cost.js'
import type { Costs } from '../costs.js'
import { tenantOf, termsOf, type AcquireOptions, type TenantOptions, type Terms } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { Permit } from '../permit.js'
import { outcomeOf, type BoxPermits, type TryOutcome } from './box-permits.js'
import { ConcurrencySemaphore, isOutage } from './concurrency-semaphore.js'
import { ReservationClient, type ClientSource, type Full } from './reservation-client.js'

/**
 * The size of the semaphore, independent of the concurrency: each slot takes an equal part of it. So processes with
 * different concurrencies, as during a deployment, each take their own parts, and none is refused.
 */
const SEMAPHORE_SIZE = 1e9
/**
 * A limiter with a concurrency: a semaphore, followed by a limiter. Each caller first acquires a slot of the semaphore,
 * and then waits for its permit of the rate limit. In the other order, the permit would expire before a slot is
 * available.
 */
export class ConcurrencyLimiter implements BoxPermits {
  readonly #remote: ReservationClient
  readonly #semaphore: ConcurrencySemaphore
  readonly #source: ClientSource
  readonly #errors: LimiterErrors
  #terms: BoxTerms
  /** Number of callers that wait for a permit. */
  #callers = 0
  /** Number of permits in use. */
  #running = 0
  #closed: Error | undefined
  #refused = false
  /** The newest try for a slot and a permit. */
  #lastTry: Promise<unknown> | undefined
  readonly #ended: (() => void)[] = []

  /** @param id the ID of the limiter in the engine. */
  constructor(source: ClientSource, terms: BoxTerms, id: string, errors: LimiterErrors) {
    this.#source = source
    this.#terms = terms
    this.#errors = errors
    this.#remote = new ReservationClient(source, terms, id, errors, (cost, options) =>
      this.acquire(cost, options),
    )
    const permits = Math.floor(SEMAPHORE_SIZE / terms.concurrency)
    this.#semaphore = new ConcurrencySemaphore({
      clock: source.clock,
      lock: source.lock({ key: concurrencyKey(id), mode: 'permits', permits, max: SEMAPHORE_SIZE }),
      lease: terms.lease,
      errors,
      late: (wait, holder) =>
        this.outage
          ? errors.unreachable(wait, this.outage)
          : errors.timedOutInUse(wait, this.#terms.concurrency, holder),
      waitsOn: terms.onUnavailable === 'closed',
      failed: error => this.#failed(error),
      look: () => this.#look(),
    })
  }

  get outage(): Error | undefined {
    return this.#remote.outage
  }

  async acquire(costs?: Costs, options?: AcquireOptions): Promise<Permit> {
    const cost = this.#terms.costs.cost(costs)
    const terms = termsOf(options)
    const { wait, signal } = terms
    if (this.#closed) throw this.#closed
    if (signal?.aborted) throw this.#errors.aborted(signal)
    if (this.#remote.usesFallback) return this.#remote.acquire(costs, options)
    const deadline = this.#source.clock.now() + wait
    const permit = this.#entered(
      async () => {
        const hasPlace = await this.#slot(cost, terms, deadline)
        // Callers with a place in the queue keep it.
        const full: Full = its => (hasPlace ? undefined : this.#full(its))
        return this.#withSlot(cost, this.#remote.acquireBy(cost, terms, deadline, full))
      },
      () => this.#remote.acquireBy(cost, terms, deadline, its => this.#full(its)),
    )
    if (wait === 0) this.#lastTry = permit
    return permit
  }

  async decide(costs?: Costs): Promise<TryOutcome> {
    this.#terms.costs.cost(costs)
    if (this.#closed) throw this.#closed
    if (this.#remote.usesFallback) return this.#remote.decide(costs)
    const outcome = this.#entered(
      () => this.#decide(costs),
      () => this.#remote.decide(costs),
    )
    this.#lastTry = outcome
    return outcome
  }

  async explain(costs?: Costs, tenant?: TenantOptions): Promise<Explanation> {
    // A try at this time comes before a caller that wants an explanation.
    await this.#lastTry?.catch(() => undefined)
    return this.#explainNow(costs, tenant)
  }

  async #explainNow(costs?: Costs, options?: TenantOptions): Promise<Explanation> {
    const rules = this.#terms.costs
    const later = (tenant: Tenant | undefined): Cost =>
      this.#semaphore.before(tenant, rules.share(rules.cost(costs))).cost
    const explanation = this.#remote.explain(costs, options, later)
    return this.#explained(await explanation, tenantOf(options))
  }

  /** Adds the state of the concurrency in this box. */
  #explained(explanation: Explanation, tenant?: Tenant): Explanation {
    const { callers } = this.#semaphore.before(tenant, 1)
    const isFull = this.#semaphore.callers > 0 || this.#semaphore.running >= this.#terms.concurrency
    return {
      ...explanation,
      waitsFor: isFull ? 'concurrency' : explanation.waitsFor,
      place: explanation.place + callers,
      running: this.#running,
    }
  }

  pauseUntil(time: Date | number): Promise<void> {
    return this.#remote.pauseUntil(time)
  }

  resume(): Promise<void> {
    return this.#remote.resume()
  }

  isIdle(since: number): boolean {
    return this.#callers === 0 && this.#semaphore.blank && this.#remote.isIdle(since)
  }

  change(terms: BoxTerms): void {
    this.#terms = terms
    this.#semaphore.refuseAbove(terms.costs)
    this.#remote.change(terms)
  }

  shut(error: Error): void {
    // Callers with a slot still wait for their permit.
    this.#closed ??= error
  }

  refuseAll(): void {
    const closed = this.#closed!
    this.#refused = true
    this.#semaphore.refuseAll(closed)
    this.#remote.shut(closed)
    this.#remote.refuseAll()
    this.#notifyEnded()
  }

  async end(): Promise<void> {
    if (this.#callers > 0 && !this.#refused) await new Promise<void>(resolve => this.#ended.push(resolve))
    this.#remote.shut(this.#closed!)
    await this.#remote.end()
  }

  /**
   * Counts a caller until it has its permit or an error.
   * @param withoutSlot called instead while no slot is needed.
   */
  async #entered<T>(enter: () => Promise<T>, withoutSlot: () => Promise<T>): Promise<T> {
    this.#callers++
    try {
      return await enter()
    } catch (error) {
      if (!isOutage(error) || !this.#remote.usesFallback) throw error
    } finally {
      this.#callers--
      if (this.#callers === 0) this.#notifyEnded()
    }
    return withoutSlot()
  }

  async #decide(costs: Costs | undefined): Promise<TryOutcome> {
    const slot = await outcomeOf(this.#try())
    if (slot instanceof BusyError) {
      // The refusal is right even if the engine can't explain it.
      const explanation = await this.#explainNow(costs).catch(() => undefined)
      return { outcome: slot, explanation: explanation && { ...explanation, waitsFor: 'concurrency' } }
    }
    const decision = this.#remote.decide(costs)
    const outcome = await outcomeOf(this.#withSlot(this.#terms.costs.cost(costs), decision.then(permitOf)))
    const { explanation } = await decision
    return { outcome, explanation: explanation && this.#explained(explanation) }
  }

  /** Acquires a slot. @throws BusyError when none is available. */
  async #try(): Promise<void> {
    if (await this.#semaphore.tryAcquire()) return
    if (this.outage) throw this.#errors.unreachable(0, this.outage)
    throw this.#errors.allInUse(this.#terms.concurrency)
  }

  /**
   * Acquires a slot, and returns whether the caller has a place in the queue.
   * @throws BusyError when too many callers wait, although all slots and permits that are available now were given.
   */
  async #slot(cost: Cost, terms: Terms, deadline: number): Promise<boolean> {
    if (terms.wait === 0) {
      await this.#try()
      return false
    }
    while (this.#full(terms)) {
      const outcome = await this.#semaphore.takeOrGive()
      if (outcome === 'taken') return false
      if (outcome === 'given') continue
      await this.#remote.served()
      const error = this.#full(terms)
      if (error) throw error
    }
    await this.#semaphore.acquire(cost, this.#terms.costs.share(cost), terms, deadline)
    return true
  }

  /** Returns the error if no further caller may wait. */
  #full({ tenant }: Terms): BusyError | undefined {
    const callers = this.#semaphore.callers + this.#remote.waiting
    const ofTenant = this.#semaphore.callersOf(tenant) + this.#remote.callersOf(tenant)
    return this.#errors.queueFull(this.#terms, callers, tenant, ofTenant)
  }

  /** Returns a permit that also releases the slot. Without a permit, releases the slot at once. */
  async #withSlot(cost: Cost, permitted: Promise<Permit>): Promise<Permit> {
    try {
      const permit = await permitted
      this.#running++
      const { costs } = this.#terms
      return new Permit(
        {
          costs,
          released: () => {
            permit.release()
            this.#running--
            this.#semaphore.release()
          },
          unused: () => permit.refund(),
          settled: (_taken, _change, amounts) => permit.settle(amounts),
        },
        cost,
      )
    } catch (error) {
      this.#semaphore.release()
      throw error
    }
  }

  #failed(error: Error): void {
    this.#remote.away(error)
    this.#moveSlotWaiters()
  }

  async #look(): Promise<void> {
    await this.#remote.look()
    this.#moveSlotWaiters()
  }

  /** Lets waiters continue without a slot while the engine is unreachable. */
  #moveSlotWaiters(): void {
    if (this.outage && this.#remote.usesFallback) this.#semaphore.refuseAll(this.outage)
  }

  #notifyEnded(): void {
    for (const notify of this.#ended.splice(0)) notify()
  }
}

/** @throws BusyError when none is available. */
function permitOf({ outcome }: TryOutcome): Permit {
  if (outcome instanceof BusyError) throw outcome
  return outcome
}
