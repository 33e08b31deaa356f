import { BusyError, TimedOutError } from '../../errors.js'
import type { PermitsClaim } from '../../engine/claim.js'
import type { Lock } from '../../core/lock.js'
import type { BoxTerms } from './box-limiter-options.js'
import { termsOf, whole, type AcquireOptions } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import { Permit } from '../permit.js'
import { aborted } from '../local/permit-queue.js'
import {
  NOBODY,
  ReservationClient,
  SHORTEST_DELAY,
  stillAway,
  tried,
  type BoxPermits,
  type ReservationSource,
  type TryOutcome,
} from './reservation-client.js'
import { isOutage, ConcurrencyPermits } from './concurrency-permits.js'

/** What a limiter with a concurrency needs of its box. */
export interface CappedSource extends ReservationSource {
  readonly lock: (claim: PermitsClaim) => Lock
}

/**
 * The size of the whole, whatever the concurrency: a permit takes an equal part of it. So processes with different
 * numbers, as during a deployment, each take the part that their number says, and none is refused.
 */
const ALL_SHARES = 1e9

/** A permit of the rate limit together with a permit of the concurrency. It gives both back. */
class CappedPermit extends Permit {
  readonly #permit: Permit
  readonly #share: Permit

  constructor(permit: Permit, share: Permit) {
    super(NOBODY, permit.n, 0, 0, 0)
    this.#permit = permit
    this.#share = share
  }

  override release(): void {
    this.#permit.release()
    this.#share.release()
  }

  override refund(): void {
    this.#permit.refund()
    this.#share.release()
  }
}

/**
 * The callers of this process that want permits of a limiter with a concurrency. Each takes a concurrency permit first,
 * and with it waits in the queue for its rate permit. The other way round the rate permit would be over before there is
 * a concurrency permit.
 */
export class ConcurrencyLimiter implements BoxPermits {
  readonly #remote: ReservationClient
  readonly #shares: ConcurrencyPermits
  readonly #source: ReservationSource
  readonly #context: { readonly key: string; readonly engine: string }
  #terms: BoxTerms
  /** How many callers have asked for a permit and have not got it yet. */
  #callers = 0
  /** How many of them have a concurrency permit. */
  #halfway = 0
  #closed: Error | undefined
  #refused = false
  /** The newest try for both permits. */
  #lastTry: Promise<unknown> | undefined
  readonly #ended: (() => void)[] = []

  /** @param id of the limiter in the engine. @param key for messages. */
  constructor(source: CappedSource, terms: BoxTerms, id: string, key: string) {
    this.#source = source
    this.#terms = terms
    this.#context = { key, engine: source.engine }
    this.#remote = new ReservationClient(source, behind(terms), id, key, (n, options) =>
      this.acquire(n, options),
    )
    const permits = Math.floor(ALL_SHARES / terms.concurrency)
    this.#shares = new ConcurrencyPermits(
      {
        clock: source.clock,
        lock: source.lock({ key: `limiter:${id}`, mode: 'permits', permits, max: ALL_SHARES }),
        context: this.#context,
        waitsOn: terms.onUnavailable === 'closed',
        failed: error => this.#failed(error),
        look: () => this.#look(),
      },
      terms.most,
    )
  }

  get outage(): Error | undefined {
    return this.#remote.outage
  }

  async acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    whole('n', n, 1, this.#terms.most)
    const { wait, signal, priority } = termsOf(options)
    if (this.#closed) throw this.#closed
    if (signal?.aborted) throw aborted({ ...this.#context, cause: signal.reason })
    if (this.#remote.goesWithout) return this.#remote.acquire(n, options)
    const { clock } = this.#source
    const isTry = wait === 0 || this.#callers >= this.#terms.queue
    const deadline = clock.now() + wait
    /** The options for what is left of the wait. */
    const rest = (): AcquireOptions => ({
      wait: isTry ? 0 : Math.max(deadline - clock.now(), SHORTEST_DELAY),
      signal,
      priority,
    })
    const permit = this.#entered(
      async callers => {
        const share = await (isTry ? this.#try(wait, callers) : this.#share(n, rest()))
        return this.#permit(share, this.#remote.acquire(n, rest()))
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
    // A caller that tries at this time comes before one that asks for an explanation.
    await this.#lastTry?.catch(() => undefined)
    return this.#explainNow(n)
  }

  async #explainNow(n?: number): Promise<Explanation> {
    return this.#explained(await this.#remote.explain(n, this.#shares.permits))
  }

  /** The same explanation with what this box knows of the concurrency. */
  #explained(explanation: Explanation): Explanation {
    const { callers } = this.#shares
    const isFull = callers > 0 || this.#shares.running >= this.#terms.concurrency
    return {
      ...explanation,
      waitsFor: isFull ? 'concurrency' : explanation.waitsFor,
      place: explanation.place + callers,
      running: this.#shares.running - this.#halfway,
    }
  }

  pauseUntil(time: Date | number): Promise<void> {
    return this.#remote.pauseUntil(time)
  }

  isIdle(since: number): boolean {
    return this.#callers === 0 && this.#shares.blank && this.#remote.isIdle(since)
  }

  change(terms: BoxTerms): void {
    this.#terms = terms
    this.#shares.change(terms.most)
    this.#remote.change(behind(terms))
  }

  shut(error: Error): void {
    // Callers that have a concurrency permit are still to get their rate permit.
    this.#closed ??= error
  }

  refuseAll(): void {
    const closed = this.#closed!
    this.#refused = true
    this.#shares.refuseAll(closed)
    this.#remote.shut(closed)
    this.#remote.refuseAll()
    this.#tellEnded()
  }

  async end(): Promise<void> {
    if (this.#callers > 0 && !this.#refused) await new Promise<void>(resolve => this.#ended.push(resolve))
    this.#remote.shut(this.#closed!)
    await this.#remote.end()
  }

  /**
   * Counts a caller until it has its permit or an error.
   * @param without what the caller does while no concurrency permit is needed.
   */
  async #entered<T>(enter: (callers: number) => Promise<T>, without: () => Promise<T>): Promise<T> {
    const callers = this.#callers++
    try {
      return await enter(callers)
    } catch (error) {
      if (!isOutage(error) || !this.#remote.goesWithout) throw error
    } finally {
      this.#callers--
      if (this.#callers === 0) this.#tellEnded()
    }
    return without()
  }

  async #decide(callers: number): Promise<TryOutcome> {
    const share = await tried(this.#try(0, callers))
    if (share instanceof BusyError) {
      // That there is no concurrency permit holds, whether the engine can tell more or not.
      const explanation = await this.#explainNow().catch(() => undefined)
      return { outcome: share, explanation: explanation && { ...explanation, waitsFor: 'concurrency' } }
    }
    const decision = this.#remote.decide()
    const outcome = await tried(this.#permit(share, decision.then(permitOf)))
    const { explanation } = await decision
    return { outcome, explanation: explanation && this.#explained(explanation) }
  }

  async #try(wait: number, callers: number): Promise<Permit> {
    const share = await this.#shares.tryAcquire()
    if (share) return share
    if (this.outage) throw stillAway(this.outage, this.#context)
    throw new BusyError(
      wait === 0 ? 'there is no permit now' : `${callers} callers wait already`,
      this.#context,
    )
  }

  async #share(n: number, options: AcquireOptions): Promise<Permit> {
    try {
      return await this.#shares.acquire(n, options)
    } catch (error) {
      const { outage } = this
      if (error instanceof TimedOutError && outage) throw stillAway(outage, this.#context)
      throw error
    }
  }

  async #permit(share: Permit, permit: Promise<Permit>): Promise<Permit> {
    this.#halfway++
    try {
      return new CappedPermit(await permit, share)
    } catch (error) {
      share.release()
      throw error
    } finally {
      this.#halfway--
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

  /** Lets waiters go on without a concurrency permit while the engine can't give any. */
  #letGo(): void {
    if (this.outage && this.#remote.goesWithout) this.#shares.refuseAll(this.outage)
  }

  #tellEnded(): void {
    for (const tell of this.#ended.splice(0)) tell()
  }
}

/** @throws BusyError when there is none. */
function permitOf({ outcome }: TryOutcome): Permit {
  if (outcome instanceof BusyError) throw outcome
  return outcome
}

/** The terms of the queue behind the concurrency: its callers have been admitted already. */
function behind(terms: BoxTerms): BoxTerms {
  return { ...terms, queue: Infinity }
}
