import type { Timer } from '../../base/clock.js'
import {
  AbortedError,
  BusyError,
  IndeterminateError,
  TimedOutError,
  UnavailableError,
} from '../../base/errors.js'
import { pause } from '../../base/pause.js'
import { concurrencyKey } from '../../base/reserved-keys.js'
import { MIN_DELAY } from '../../base/waiters.js'
import type { Grant } from '../../core/grant.js'
import type { ClaimSetLock } from '../../core/lock.js'
import type { BoxTerms } from './box-limiter-options.js'
import { checkedInteger, termsOf, type AcquireOptions, type Terms } from '../limit-options.js'
import type { Explanation } from '../limiter.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { Permit } from '../permit.js'
import { outcomeOf, type BoxPermits, type TryOutcome } from './box-permits.js'
import { RETRY } from './pace.js'
import { ReservationClient, type ClientSource } from './reservation-client.js'

/**
 * The size of the semaphore, independent of the concurrency: each slot takes an equal part of it. So processes with
 * different concurrencies, as during a deployment, each take their own parts, and none is refused.
 */
const SEMAPHORE_SIZE = 1e9

/**
 * A limiter with a concurrency: a semaphore of the box, followed by a limiter. Each caller first acquires a slot of the
 * semaphore, regardless of the number of its permits, and then waits for its permit of the rate limit. In the other
 * order, the permit would expire before a slot is available.
 */
export class ConcurrencyLimiter implements BoxPermits {
  readonly #remote: ReservationClient
  readonly #lock: ClaimSetLock
  readonly #source: ClientSource
  readonly #errors: LimiterErrors
  #terms: BoxTerms
  /** The slots of the callers that have one. */
  readonly #slots: Grant[] = []
  /** Number of callers that wait for a permit, with or without a slot. */
  #callers = 0
  /** Number of callers that wait for a slot, and of the permits that they want. */
  #waiting = 0
  #wanted = 0
  /** Number of permits in use. */
  #running = 0
  #closed: Error | undefined
  #refused = false
  /** The timer of the next check whether the engine is unreachable, while callers wait for a slot. */
  #lookout: Timer | undefined
  /** The newest try for a slot and a permit. */
  #lastTry: Promise<unknown> | undefined
  readonly #ended: (() => void)[] = []

  /** @param id the ID of the limiter in the engine. */
  constructor(source: ClientSource, terms: BoxTerms, id: string, errors: LimiterErrors) {
    this.#source = source
    this.#terms = terms
    this.#errors = errors
    this.#remote = new ReservationClient(source, terms, id, errors, (n, options) => this.acquire(n, options))
    const permits = Math.floor(SEMAPHORE_SIZE / terms.concurrency)
    this.#lock = source.lock({ key: concurrencyKey(id), mode: 'permits', permits, max: SEMAPHORE_SIZE })
  }

  get outage(): Error | undefined {
    return this.#remote.outage
  }

  async acquire(n = 1, options?: AcquireOptions): Promise<Permit> {
    checkedInteger('n', n, 1, this.#terms.maxPermits)
    const terms = termsOf(options)
    const { wait, signal } = terms
    if (this.#closed) throw this.#closed
    if (signal?.aborted) throw this.#errors.aborted(signal)
    if (this.#remote.usesFallback) return this.#remote.acquire(n, options)
    const deadline = this.#source.clock.now() + wait
    const permit = this.#entered(
      async () => {
        const hasPlace = await this.#slot(n, terms, deadline)
        // Callers with a place in the queue keep it.
        const isFull = (): boolean => !hasPlace && this.#isFull
        return this.#inUse(await this.#withSlot(this.#remote.acquireBy(n, terms, deadline, isFull)))
      },
      () => this.#remote.acquireBy(n, terms, deadline, () => this.#isFull),
    )
    if (wait === 0) this.#lastTry = permit
    return permit
  }

  async decide(): Promise<TryOutcome> {
    if (this.#closed) throw this.#closed
    if (this.#remote.usesFallback) return this.#remote.decide()
    const outcome = this.#entered(
      () => this.#decide(),
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
    return this.#explained(await this.#remote.explain(n, this.#wanted))
  }

  /** Adds the state of the concurrency in this box. */
  #explained(explanation: Explanation): Explanation {
    const isFull = this.#waiting > 0 || this.#slots.length >= this.#terms.concurrency
    return {
      ...explanation,
      waitsFor: isFull ? 'concurrency' : explanation.waitsFor,
      place: explanation.place + this.#waiting,
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
    return this.#callers === 0 && this.#slots.length === 0 && this.#remote.isIdle(since)
  }

  change(terms: BoxTerms): void {
    this.#terms = terms
    this.#remote.change(terms)
  }

  shut(error: Error): void {
    // Callers with a slot still wait for their permit.
    this.#closed ??= error
  }

  refuseAll(): void {
    const closed = this.#closed!
    this.#refused = true
    this.#refuseSlots(closed)
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

  async #decide(): Promise<TryOutcome> {
    const slot = await outcomeOf(this.#try())
    if (slot instanceof BusyError) {
      // The refusal is right even if the engine can't explain it.
      const explanation = await this.#explainNow().catch(() => undefined)
      return { outcome: slot, explanation: explanation && { ...explanation, waitsFor: 'concurrency' } }
    }
    const { outcome, explanation } = await this.#withSlot(this.#remote.decide())
    const isRefused = outcome instanceof BusyError
    if (isRefused) this.#releaseSlot()
    return {
      outcome: isRefused ? outcome : this.#inUse(outcome),
      explanation: explanation && this.#explained(explanation),
    }
  }

  /** Acquires a slot. @throws BusyError when none is available. */
  async #try(): Promise<void> {
    if (!this.#isAwaited && (await this.#takeSlot()) === 'taken') return
    if (this.outage) throw this.#errors.unreachable(0, this.outage)
    throw this.#errors.allInUse(this.#terms.concurrency)
  }

  /**
   * Acquires a slot, and returns whether the caller has a place in the queue.
   * @throws BusyError when too many callers wait, although all slots and permits that are available now were given.
   */
  async #slot(n: number, terms: Terms, deadline: number): Promise<boolean> {
    if (terms.wait === 0) {
      await this.#try()
      return false
    }
    while (this.#isFull) {
      const outcome = await this.#takeSlot()
      if (outcome === 'taken') return false
      if (outcome === 'given') continue
      await this.#remote.settled()
      if (this.#isFull) throw this.#errors.queueFull(this.#terms.queue)
    }
    await this.#waitForSlot(n, terms, deadline)
    return true
  }

  /** Whether a caller waits for a slot that the engine has not granted. */
  get #isAwaited(): boolean {
    return this.#waiting > 0 && this.#lock.callers.waiting
  }

  /** Whether no further caller may wait. */
  get #isFull(): boolean {
    return this.#waiting + this.#remote.waiting >= this.#terms.queue
  }

  /** Takes a slot that is available now. Leaves it to the waiters if there are any. Rejects as `Lock.tryAcquire` does. */
  async #takeSlot(): Promise<'taken' | 'given' | 'none'> {
    const { lease } = this.#terms
    // A request of its own: otherwise one that is under way for a waiter would count as if no slot were available.
    const slot = await this.#lock.tryAcquire({ lease, ownRequest: true }).catch((error: unknown) => {
      this.#failed(error)
      throw error
    })
    if (!slot) return 'none'
    const isFree = !this.#isAwaited
    if (isFree) this.#slots.push(slot)
    else this.#release(slot)
    return isFree ? 'taken' : 'given'
  }

  /** Acquires a slot for a caller of `n` permits. @throws what `acquire` throws */
  async #waitForSlot(n: number, { wait, signal, priority }: Terms, deadline: number): Promise<void> {
    const { clock } = this.#source
    // While the engine is unreachable, not every new caller sends a request.
    const isAway = this.outage !== undefined && this.#terms.onUnavailable === 'closed'
    let before = isAway && this.#waiting > 0 ? pause(RETRY, clock) : undefined
    this.#waiting++
    this.#wanted += n
    this.#lookLater()
    try {
      for (;;) {
        if (this.#refused) throw this.#closed!
        const left = Math.max(deadline - clock.now(), MIN_DELAY)
        const { lease, onUnavailable } = this.#terms
        const options = { wait: left, lease, renew: true, label: undefined, signal, priority, before }
        try {
          this.#slots.push(await this.#lock.acquireBy(options))
          break
        } catch (error) {
          if (error instanceof AbortedError) throw this.#errors.aborted(signal!)
          if (error instanceof TimedOutError) {
            throw this.outage
              ? this.#errors.unreachable(wait, this.outage)
              : this.#errors.timedOutInUse(wait, this.#terms.concurrency, error.holder)
          }
          this.#failed(error)
          if (!isOutage(error) || onUnavailable !== 'closed') throw error
          // The caller keeps its place in the queue meanwhile.
          before = pause(RETRY, clock)
        }
      }
    } finally {
      this.#waiting--
      this.#wanted -= n
      if (this.#waiting === 0) {
        this.#lookout?.cancel()
        this.#lookout = undefined
      }
    }
    const { maxPermits } = this.#terms
    if (n <= maxPermits) return
    this.#releaseSlot()
    throw this.#errors.lowered(maxPermits, n)
  }

  #releaseSlot(): void {
    // A lost slot no longer counts in the engine, but the others do. So a lost one is released first. If none is lost,
    // the index -1 takes the newest slot.
    const lost = this.#slots.findIndex(slot => slot.expiresIn() === 0)
    this.#release(this.#slots.splice(lost, 1)[0]!)
  }

  #release(slot: Grant): void {
    // A slot that can't be released ends when its lease expires. A lost one has ended already.
    slot.release().catch((error: unknown) => this.#failed(error))
  }

  /** Rejects the callers that wait for a slot. */
  #refuseSlots(error: Error): void {
    if (this.#waiting > 0) this.#lock.callers.failAll(error)
  }

  /** Releases the slot of a caller that gets an error instead of a permit. */
  async #withSlot<T>(outcome: Promise<T>): Promise<T> {
    try {
      return await outcome
    } catch (error) {
      this.#releaseSlot()
      throw error
    }
  }

  /** Returns a permit that also releases the slot. */
  #inUse(permit: Permit): Permit {
    this.#running++
    const released = (): void => {
      permit.release()
      this.#running--
      this.#releaseSlot()
    }
    return new Permit({ released, unused: () => permit.refund() }, permit.n)
  }

  /** Called when a request for a slot, or a release, has failed. */
  #failed(error: unknown): void {
    if (!isOutage(error)) return
    this.#remote.away(error)
    this.#moveSlotWaiters()
  }

  /** Checks whether the engine is unreachable while callers wait for a slot, which do not notice it otherwise. */
  #lookLater(): void {
    const look = async (): Promise<void> => {
      this.#lookout = undefined
      this.#lookLater()
      await this.#remote.look()
      this.#moveSlotWaiters()
    }
    this.#lookout ??= this.#source.clock.after(RETRY, () => void look(), false)
  }

  /** Lets waiters continue without a slot while the engine is unreachable. */
  #moveSlotWaiters(): void {
    if (this.outage && this.#remote.usesFallback) this.#refuseSlots(this.outage)
  }

  #notifyEnded(): void {
    for (const notify of this.#ended.splice(0)) notify()
  }
}

/** Whether an error means that the engine is unreachable. */
function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
