import { wallOf, type Timer } from '../../base/clock.js'
import type { Duration } from '../../base/duration.js'
import {
  channels,
  type LimitEvent,
  type PausedEvent,
  type PermittedEvent,
  type RefusedEvent,
} from '../../base/diagnostics.js'
import { boxClosed, BusyError, InvalidArgumentError, shown, type ClosedError } from '../../base/errors.js'
import { checkKey, MAX_KEY_LENGTH } from '../../base/options.js'
import { printedAs } from '../../base/printed.js'
import { needsReceiver } from '../../base/receiver.js'
import { concurrencyKey } from '../../base/reserved-keys.js'
import { boxTerms, changedTerms, type BoxLimiterOptions, type BoxTerms } from './box-limiter-options.js'
import { closeAll, drainOf, type LimiterCloseOptions } from '../closing.js'
import type { Amounts, Costs } from '../costs.js'
import type { AcquireOptions, TenantOptions } from '../limit-options.js'
import type { Decision, Explanation } from '../limiter.js'
import { LimiterErrors } from '../limiter-errors.js'
import { Permit, underPermit } from '../permit.js'
import { LatencyEstimator } from './latency-estimator.js'
import { ConcurrencyLimiter } from './concurrency-limiter.js'
import { NOW, type BoxPermits } from './box-permits.js'
import { limiterId } from './kept-limiters.js'
import { ReservationClient, type ClientSource, type LimiterSource } from './reservation-client.js'

/** The outcome of `decide`, and the state of the limiter, both from the same reply of the engine. */
export interface BoxDecision extends Pick<Decision, 'permit'> {
  /** The state for the next caller; undefined if this process decided alone, because the engine is unreachable. */
  readonly explanation: Explanation | undefined
}

/** The methods of a limiter of a box, or of one of its keys. They match those of `Limiter`, but return promises. */
export interface KeyedBoxLimiter {
  /**
   * Returns a permit if it is available now without overtaking a waiter, else undefined. Waits only for the engine's
   * reply. With a `concurrency`, it also takes a permit of that, or neither.
   * @param cost number of calls, no greater than the smallest limit; default 1. If limits count other units, an amount
   * of each, such as `{ tokens: 1200 }`.
   * @throws UnavailableError or IndeterminateError when the engine can't be reached (see `onUnavailable`),
   * InvalidArgumentError, ClosedError
   */
  tryAcquire(cost?: Costs): Promise<Permit | undefined>
  /**
   * Does the same as `tryAcquire`. Also returns the number of remaining permits, and the time until more
   * are available, from the same reply of the engine. A separate call of `explain` would return the state of a later
   * moment.
   * @throws as `tryAcquire`
   */
  decide(cost?: Costs): Promise<BoxDecision>
  /**
   * Waits for its turn, and returns a permit. The callers of a process are served by priority, then in call order; if
   * they have tenants, the tenants take turns. Processes take turns. With a `concurrency`, the caller first waits for a
   * permit of that; `wait` limits both waits together. That permit has a lease: a process that can't renew it for that
   * long loses it, although the call may continue.
   * @throws TimedOutError when `wait` has passed, or as soon as the engine replies that the permit can't be available
   * by then (BusyError for a wait of 0); BusyError when too many callers wait; AbortedError; and as `tryAcquire`
   */
  acquire(cost?: Costs, options?: AcquireOptions): Promise<Permit>
  /**
   * Acquires a permit, calls `task`, releases the permit, and returns the task's result.
   * @throws the errors of `acquire`, with `taskBegan` false; the error of the task
   */
  run<T>(task: (permit: Permit) => T | Promise<T>, cost?: Costs, options?: AcquireOptions): Promise<T>
  /**
   * Returns the state of the limiter for a caller that would request permits now, on behalf of this tenant. `place`
   * counts the waiters of this process. `readyIn` includes permits that other processes have reserved, but not those
   * for which they only wait. About a `concurrency`, it reports only the state of this box: `running` counts its own
   * permits, and `waitsFor` is `'concurrency'` if callers of this box wait for one, or hold all.
   * @throws as `tryAcquire`
   */
  explain(cost?: Costs, tenant?: TenantOptions): Promise<Explanation>
  /**
   * Grants no permit before this time in any process, for example before a time that a service has sent. It applies at
   * once to new callers, and within 250 ms to waiting ones. Of several times, the latest applies.
   * @param time a Date, or milliseconds since 1970, by the clock of this process; at most 366 days ahead.
   * @throws as `tryAcquire`
   */
  pauseUntil(time: Date | number): Promise<void>
  /**
   * Ends a pause in all processes: callers get permits again, as the limits allow; those that wait already, within 2.5
   * seconds.
   * @throws as `tryAcquire`
   */
  resume(): Promise<void>
  /** The error of the engine's last reply; undefined if it succeeded. It distinguishes an outage from a limit. */
  readonly outage: Error | undefined
}

/** A limiter that all processes with a box on the same engine share, and one for each key. */
export interface BoxLimiter extends KeyedBoxLimiter, AsyncDisposable {
  /**
   * Returns the limiter of one key, which has the same limits and counts separately. It takes memory only while it is
   * in use, and for up to 20 seconds or a window afterwards, whichever is longer.
   * @throws InvalidArgumentError
   */
  key(key: string): KeyedBoxLimiter
  /**
   * Changes a limit in this box, for all keys, until the limiter is closed. Permits that were granted before still
   * count. A waiter that wants more permits than the new limit is rejected with an InvalidArgumentError; the others
   * keep waiting. While other processes use another limit, both apply. A greater limit applies as soon as all processes
   * that used the old one use it, or five seconds after the last use of the old one.
   * @param per selects one of several limits, together with the unit.
   * @throws InvalidArgumentError, ClosedError
   */
  setLimit(limit: number, per?: Duration, unit?: string): void
  /**
   * Grants no more permits in this box; other processes continue. Waiters of this box are rejected with a ClosedError,
   * unless `drain` serves them first. A permit in use counts for a `concurrency` until it is released. Resolves when no
   * waiter of this box is left.
   * @throws InvalidArgumentError
   */
  close(options?: LimiterCloseOptions): Promise<void>
}

/** Time for which an unused entry is kept, in milliseconds. */
const FORGET = 10_000
/** Stands for the limiter itself, because no key is empty. */
const WHOLE = ''

/** A limiter of a box, with those of its keys. */
class Family {
  readonly byKey = new Map<string, BoxPermits>()
  /** When `limiter` was last called for it: clock time. */
  usedAt = 0
  terms: BoxTerms

  /** @param made the terms from the options; `setLimit` may have changed the current ones. */
  constructor(readonly made: BoxTerms) {
    this.terms = made
  }
}

/** The limiters of a box by name. */
export class BoxLimiters {
  readonly source: ClientSource
  readonly #families = new Map<string, Family>()
  #sweeper: Timer | undefined
  #closed: ClosedError | undefined

  constructor(source: LimiterSource) {
    this.source = { ...source, meter: new LatencyEstimator() }
  }

  /**
   * Returns the limiter of this name.
   * @throws InvalidArgumentError when an option is invalid, or a limiter of this name is in use with different options.
   */
  limiter(name: string, options: BoxLimiterOptions): BoxLimiter {
    checkKey('name', name)
    checkLength(name, undefined)
    const terms = boxTerms(options)
    this.#family(name, terms).usedAt = this.source.clock.now()
    return new LimiterOfBox({ limiters: this, name, terms, closed: undefined })
  }

  /** @throws InvalidArgumentError */
  permits(name: string, terms: BoxTerms, key: string): BoxPermits {
    const { byKey, terms: current } = this.#family(name, terms)
    let permits = byKey.get(key)
    if (!permits) {
      const keyName = key === WHOLE ? undefined : key
      const Permits = current.concurrency === Infinity ? ReservationClient : ConcurrencyLimiter
      const errors = new LimiterErrors(name, keyName, this.source.engine)
      permits = new Permits(this.source, current, limiterId(name, keyName), errors)
      byKey.set(key, permits)
      if (this.#closed) permits.shut(this.#closed)
    }
    return permits
  }

  /** @throws InvalidArgumentError */
  setLimit(
    name: string,
    terms: BoxTerms,
    limit: number,
    per: Duration | undefined,
    unit: string | undefined,
  ): void {
    const family = this.#family(name, terms)
    family.terms = changedTerms(family.terms, limit, per, unit)
    for (const permits of family.byKey.values()) permits.change(family.terms)
  }

  /**
   * Closes a limiter and those of its keys.
   * @param closed the error for later callers.
   * @param patience maximum time for which waiters are still served, in milliseconds.
   */
  async end(name: string, closed: ClosedError, patience: number): Promise<void> {
    const family = this.#families.get(name)
    this.#families.delete(name)
    if (family) await this.#shut([family], closed, patience)
  }

  /** Closes all limiters, because the box is closed. */
  async close(): Promise<void> {
    this.#closed = boxClosed(this.source.engine)
    this.#sweeper?.cancel()
    await this.#shut([...this.#families.values()], this.#closed, 0)
  }

  async #shut(families: readonly Family[], closed: ClosedError, patience: number): Promise<void> {
    const all = families.flatMap(({ byKey }) => [...byKey.values()])
    for (const permits of all) permits.shut(closed)
    await closeAll(all, patience, this.source.clock)
  }

  #family(name: string, terms: BoxTerms): Family {
    let family = this.#families.get(name)
    // The same object needs no comparison.
    if (family && family.made !== terms && family.made.signature !== terms.signature) {
      throw new InvalidArgumentError(
        `limiter ${shown(name)} is in use in this box with different options; close it first, or use another name`,
      )
    }
    if (!family) {
      family = new Family(terms)
      this.#families.set(name, family)
      this.#sweepLater()
    }
    return family
  }

  #sweepLater(): void {
    if (this.#sweeper || this.#closed) return
    const sweep = (): void => {
      this.#sweeper = undefined
      this.#sweep(this.source.clock.now() - FORGET)
      if (this.#families.size > 0) this.#sweepLater()
    }
    this.#sweeper = this.source.clock.after(FORGET, sweep, false)
  }

  #sweep(since: number): void {
    for (const [name, { byKey, made, terms, usedAt }] of this.#families) {
      for (const [key, permits] of byKey) if (permits.isIdle(since)) byKey.delete(key)
      // A limiter with a changed limit is kept, because the options of its callers don't have that limit.
      if (byKey.size === 0 && usedAt < since && made === terms) this.#families.delete(name)
    }
  }
}

/**
 * Checks that the key of the lock for a `concurrency` is not too long. A limiter without one is checked, too, because
 * another process, or a later version of the program, may use it with one.
 * @throws InvalidArgumentError
 */
function checkLength(name: string, key: string | undefined): void {
  const excess = concurrencyKey(limiterId(name, key)).length - MAX_KEY_LENGTH
  if (excess <= 0) return
  const [what, given] = key === undefined ? ['name', name] : ['key', key]
  throw new InvalidArgumentError(
    `${what} must have at most ${given.length - excess} characters here, not ${given.length}: a limiter's name and key ` +
      `are kept as one text of at most ${MAX_KEY_LENGTH} characters`,
  )
}

/** The state that a limiter and those of its keys share. */
interface Shared {
  readonly limiters: BoxLimiters
  readonly name: string
  readonly terms: BoxTerms
  closed: ClosedError | undefined
}

/** The limiter of one key. It has only name and options, so users can keep it while its counts are dropped. */
class OfKey implements KeyedBoxLimiter {
  readonly #shared: Shared
  readonly #key: string

  static {
    needsReceiver(this)
    printedAs(this, 'Limiter', limiter => {
      const { name, limiters } = limiter.#shared
      const key = limiter.#key === WHOLE ? {} : { key: limiter.#key }
      return { name, ...key, engine: limiters.source.engine }
    })
  }

  constructor(shared: Shared, key: string) {
    this.#shared = shared
    this.#key = key
  }

  /** The state of a limiter, for its subclass. */
  protected static sharedOf(limiter: OfKey): Shared {
    return limiter.#shared
  }

  async tryAcquire(cost?: Costs): Promise<Permit | undefined> {
    try {
      return await this.acquire(cost, NOW)
    } catch (error) {
      if (error instanceof BusyError) return undefined
      throw error
    }
  }

  async decide(cost?: Costs): Promise<BoxDecision> {
    const decision = this.#with(permits => permits.decide(cost))
    const { outcome, explanation } = await this.#published(cost, decision, ({ outcome }) => outcome)
    return { permit: outcome instanceof BusyError ? undefined : outcome, explanation }
  }

  acquire(cost?: Costs, options?: AcquireOptions): Promise<Permit> {
    const permit = this.#with(permits => permits.acquire(cost, options))
    const isObserved = channels.permitted.hasSubscribers || channels.refused.hasSubscribers
    return isObserved ? this.#published(cost, permit, its => its) : permit
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, cost?: Costs, options?: AcquireOptions): Promise<T> {
    return underPermit(() => this.acquire(cost, options), task)
  }

  explain(cost?: Costs, tenant?: TenantOptions): Promise<Explanation> {
    return this.#with(permits => permits.explain(cost, tenant))
  }

  async pauseUntil(time: Date | number): Promise<void> {
    const isAhead = Number(time) > wallOf(this.#shared.limiters.source.clock)()
    await this.#with(permits => permits.pauseUntil(time))
    if (isAhead && channels.paused.hasSubscribers)
      channels.paused.publish({ ...this.#event(), until: Number(time) } satisfies PausedEvent)
  }

  resume(): Promise<void> {
    return this.#with(permits => permits.resume())
  }

  get outage(): Error | undefined {
    return this.#permits.outage
  }

  /** Publishes the outcome of a request, and returns the same. */
  async #published<T>(
    cost: Costs | undefined,
    result: Promise<T>,
    outcomeOf: (result: T) => Permit | BusyError,
  ): Promise<T> {
    // It may be invalid.
    const n = typeof cost === 'object' ? ((cost as Amounts | null)?.['calls'] ?? 1) : (cost ?? 1)
    const { clock } = this.#shared.limiters.source
    const since = clock.now()
    const publish = (outcome: unknown): void => {
      const event = { ...this.#event(), n, waited: clock.now() - since }
      if (outcome instanceof Permit) channels.permitted.publish(event satisfies PermittedEvent)
      else channels.refused.publish({ ...event, error: outcome } satisfies RefusedEvent)
    }
    try {
      const known = await result
      publish(outcomeOf(known))
      return known
    } catch (error) {
      publish(error)
      throw error
    }
  }

  #event(): LimitEvent {
    const { limiters, name: limiter } = this.#shared
    const { engine, session } = limiters.source
    return { engine, session, limiter, key: this.#key === WHOLE ? undefined : this.#key }
  }

  get #permits(): BoxPermits {
    const { limiters, name, terms } = this.#shared
    return limiters.permits(name, terms, this.#key)
  }

  #with<T>(task: (permits: BoxPermits) => Promise<T>): Promise<T> {
    try {
      if (this.#shared.closed) throw this.#shared.closed
      return task(this.#permits)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

class LimiterOfBox extends OfKey implements BoxLimiter {
  static {
    needsReceiver(this)
  }

  constructor(shared: Shared) {
    super(shared, WHOLE)
  }

  key(key: string): KeyedBoxLimiter {
    checkKey('key', key)
    const shared = OfKey.sharedOf(this)
    checkLength(shared.name, key)
    return new OfKey(shared, key)
  }

  setLimit(limit: number, per?: Duration, unit?: string): void {
    const { closed, limiters, name, terms } = OfKey.sharedOf(this)
    if (closed) throw closed
    limiters.setLimit(name, terms, limit, per, unit)
  }

  async close(options: LimiterCloseOptions = {}): Promise<void> {
    const drain = drainOf(options)
    const shared = OfKey.sharedOf(this)
    const { limiters, name } = shared
    const { engine } = limiters.source
    const closed = (shared.closed ??= new LimiterErrors(name, undefined, engine).closed())
    await limiters.end(name, closed, drain)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
