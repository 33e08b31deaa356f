import { BusyError, TimedOutError } from '../../errors.js'
import type { PermitsClaim } from '../../engine/claim.js'
import type { Lock } from '../../core/lock.js'
import { concurrencyKey } from '../../reserved-keys.js'
import type { BoxTerms } from './box-limiter-options.js'
import { termsOf, whole, type AcquireOptions, type Terms } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import { Permit } from '../permit.js'
import { aborted, busy, late } from '../refusals.js'
import { tried, type BoxPermits, type TryOutcome } from './box-permits.js'
import { ConcurrencySemaphore, isOutage } from './concurrency-semaphore.js'
import { MIN_WAIT } from './outage.js'
import type { ReservationSource } from './reservation-calls.js'
import { ReservationClient } from './reservation-client.js'

/** The box of a limiter with a concurrency, as far as it is needed. */
export interface ConcurrencyLimiterSource extends ReservationSource {
  readonly lock: (claim: PermitsClaim) => Lock
}

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
  readonly #source: ReservationSource
  readonly #context: { readonly key: string; readonly engine: string }
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

  /** @param id the ID of the limiter in the engine. @param key the key for messages. */
  constructor(source: ConcurrencyLimiterSource, terms: BoxTerms, id: string, key: string) {
    this.#source = source
    this.#terms = terms
    this.#context = { key, engine: source.engine }
    this.#remote = new ReservationClient(source, behind(terms), id, key, (n, options) =>
      this.acquire(n, options),
    )
    const permits = Math.floor(SEMAPHORE_SIZE / terms.concurrency)
    this.#semaphore = new ConcurrencySemaphore({
      clock: source.clock,
      lock: source.lock({ key: concurrencyKey(id), mode: 'permits', permits, max: SEMAPHORE_SIZE }),
      context: this.#context,
      waitsOn: terms.onUnavailable === 'closed',
      failed: error => this.#failed(error),
      look: () => this.#look(),
    })
  }

  get outage(): Error | undefined {
    return this.#remote.outage
  }

  async acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    whole('n', n, 1, this.#terms.maxPermits)
    const { wait, signal, priority } = termsOf(options)
    if (this.#closed) throw this.#closed
    if (signal?.aborted) throw aborted(signal, this.#context)
    if (this.#remote.goesWithout) return this.#remote.acquire(n, options)
    const { clock } = this.#source
    const isTry = wait === 0 || this.#callers >= this.#terms.queue
    const deadline = clock.now() + wait
    /** The options for the rest of the wait. */
    const rest = (): Terms => ({
      wait: isTry ? 0 : Math.max(deadline - clock.now(), MIN_WAIT),
      signal,
      priority,
    })
    const permit = this.#entered(
      async callers => {
        await (isTry ? this.#try(wait, callers) : this.#slot(n, rest()))
        return this.#withSlot(this.#remote.acquire(n, rest()))
      },
      () => this.#remote.acquire(n, rest()),
    )
    if (isTry) this.#lastTry = permit
    return permit
  }

  async decide(): Promise<TryOutcome> {
    if (this.#closed) throw this.#closed
    if (this.#remote.goesWithout) return this.#remote.decide()
    const outcome = this.#entered(
      callers => this.#decide(callers),
      () => this.#remote.decide(),
    )
    this.#lastTry = outcome
    return outcome
  }

  async explain(n?: number): Promise<Explanation> {
    // A try at this time comes before a caller that wants an explanation.
    await this.#lastTry?.catch(() => undefined)
    return this.#explainNow(n)
  }

  async #explainNow(n?: number): Promise<Explanation> {
    return this.#explained(await this.#remote.explain(n, this.#semaphore.permits))
  }

  /** Adds the state of the concurrency, as far as this box knows it. */
  #explained(explanation: Explanation): Explanation {
    const { callers } = this.#semaphore
    const isFull = callers > 0 || this.#semaphore.running >= this.#terms.concurrency
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
    this.#semaphore.refuseAbove(terms.maxPermits)
    this.#remote.change(behind(terms))
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
   * @param without called instead while no slot is needed.
   */
  async #entered<T>(enter: (callers: number) => Promise<T>, without: () => Promise<T>): Promise<T> {
    const callers = this.#callers++
    try {
      return await enter(callers)
    } catch (error) {
      if (!isOutage(error) || !this.#remote.goesWithout) throw error
    } finally {
      this.#callers--
      if (this.#callers === 0) this.#notifyEnded()
    }
    return without()
  }

  async #decide(callers: number): Promise<TryOutcome> {
    const slot = await tried(this.#try(0, callers))
    if (slot instanceof BusyError) {
      // The refusal is right even if the engine can't explain it.
      const explanation = await this.#explainNow().catch(() => undefined)
      return { outcome: slot, explanation: explanation && { ...explanation, waitsFor: 'concurrency' } }
    }
    const decision = this.#remote.decide()
    const outcome = await tried(this.#withSlot(decision.then(permitOf)))
    const { explanation } = await decision
    return { outcome, explanation: explanation && this.#explained(explanation) }
  }

  /** Acquires a slot. @throws BusyError when none is available. */
  async #try(wait: number, callers: number): Promise<void> {
    if (await this.#semaphore.tryAcquire()) return
    if (this.outage) throw late(this.#context, this.outage)
    throw busy(wait, callers, this.#context)
  }

  /** Waits for a slot. */
  async #slot(n: number, terms: Terms): Promise<void> {
    try {
      await this.#semaphore.acquire(n, terms)
    } catch (error) {
      const { outage } = this
      if (error instanceof TimedOutError && outage) throw late(this.#context, outage)
      throw error
    }
  }

  /** Returns a permit that also releases the slot. Without a permit, releases the slot at once. */
  async #withSlot(permitted: Promise<Permit>): Promise<Permit> {
    try {
      const permit = await permitted
      this.#running++
      return new Permit(
        {
          released: () => {
            permit.release()
            this.#running--
            this.#semaphore.release()
          },
          unused: () => permit.refund(),
        },
        permit.n,
        0,
        0,
        0,
      )
    } catch (error) {
      this.#semaphore.release()
      throw error
    }
  }

  #failed(error: Error): void {
    this.#remote.away(error)
    this.#letGo()
  }

  async #look(): Promise<void> {
    await this.#remote.look()
    this.#letGo()
  }

  /** Lets waiters continue without a slot while the engine is out of reach. */
  #letGo(): void {
    if (this.outage && this.#remote.goesWithout) this.#semaphore.refuseAll(this.outage)
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

/** The terms of the queue behind the semaphore, whose callers are already admitted. */
function behind(terms: BoxTerms): BoxTerms {
  return { ...terms, queue: Infinity }
}
