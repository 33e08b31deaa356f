import { wallOf, type Timer } from '../../clock.js'
import type { Duration } from '../../duration.js'
import {
  channels,
  type LimitEvent,
  type PausedEvent,
  type PermittedEvent,
  type RefusedEvent,
} from '../../diagnostics.js'
import { BusyError, ClosedError, InvalidArgumentError, shown } from '../../errors.js'
import { checkKey, MAX_KEY_LENGTH } from '../../options.js'
import { concurrencyKey } from '../../reserved-keys.js'
import { boxTerms, changedTerms, type BoxLimiterOptions, type BoxTerms } from './box-limiter-options.js'
import { drainOf, endAll, type LimiterCloseOptions } from '../closing.js'
import type { AcquireOptions } from '../limit-options.js'
import type { Decision, Explanation } from '../limiter.js'
import { underPermit, type Permit } from '../permit.js'
import { LatencyEstimator } from './latency-estimator.js'
import { ConcurrencyLimiter, type ConcurrencyLimiterSource } from './concurrency-limiter.js'
import { NOW, type BoxPermits } from './box-permits.js'
import { limiterId } from './limiter-id.js'
import { ReservationClient } from './reservation-client.js'

/** Whether a caller may continue now, and what that leaves: both from the same answer of the engine. */
export interface BoxDecision extends Pick<Decision, 'permit'> {
  /** As of any limiter; undefined where this process decided alone, because the engine can't be asked. */
  readonly explanation: Explanation | undefined
}

/** What a limiter of a box can do, as a whole or for one key: the same as any limiter, with promises. */
export interface KeyedBoxLimiter {
  /**
   * A permit for `n` calls if it can be had now without overtaking a waiter, else undefined; waits for nothing but the
   * engine's answers. With a `concurrency` it takes a permit of that, too, or neither.
   * @param n a whole number, no greater than the least limit; default 1.
   * Rejects with UnavailableError or IndeterminateError when the engine can't be asked (see `onUnavailable`),
   * InvalidArgumentError, ClosedError.
   */
  tryAcquire(n?: number): Promise<Permit | undefined>
  /**
   * As `tryAcquire` for one call. It also returns what is left and when more comes back, from the same reply of the
   * engine. What `explain` returns after a `tryAcquire` is of a later moment. Rejects as `tryAcquire` does.
   */
  decide(): Promise<BoxDecision>
  /**
   * A permit for `n` calls as soon as it is this caller's turn: in this process by priority, then first come, first
   * served; processes take turns. With a `concurrency` the caller waits for a permit of that first, and `wait` is for
   * both together. That permit is leased: a process that does not renew it for 30 seconds loses it, although the call
   * may continue. Rejects with TimedOutError when `wait` is over, or as soon as the engine says that it can't be met
   * (BusyError for a wait of 0), BusyError when too many callers wait, AbortedError, and as `tryAcquire` does.
   */
  acquire(n?: number, options?: AcquireOptions): Promise<Permit>
  /**
   * Acquires, calls `task`, releases, and returns what the task returned. Rejects as `acquire` does, with a `taskBegan`
   * of false, and with what the task throws.
   */
  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T>
  /**
   * What a caller that asked for `n` permits now would meet. `place` counts the waiters of this process. `readyIn`
   * counts what other processes have reserved, but not their waiters for which nothing is reserved yet. Of a
   * `concurrency` it shows what this box knows: how many are `running` here; and `waitsFor` names it when callers of
   * this box wait for a permit of it, or hold all of them. Rejects as `tryAcquire` does.
   */
  explain(n?: number): Promise<Explanation>
  /**
   * Gives no permit before this time, such as one that a service has named, in any process: callers that ask from now
   * on feel it at once, waiters within 250 ms. Of several times the latest counts.
   * @param time a Date, or milliseconds since 1970, by the clock of this process; no more than 366 days ahead. Rejects
   * as `tryAcquire` does.
   */
  pauseUntil(time: Date | number): Promise<void>
  /**
   * Ends a pause, in all processes: their callers get permits again as the limits allow, and those that wait already
   * within 2.5 seconds. Rejects as `tryAcquire` does.
   */
  resume(): Promise<void>
  /**
   * Why the engine could not be asked the last time; undefined when it could. It distinguishes an outage from a limit.
   */
  readonly outage: Error | undefined
}

/** A limiter that all processes with a box on the same engine share, and one for each key. */
export interface BoxLimiter extends KeyedBoxLimiter, AsyncDisposable {
  /**
   * The limiter of one key, which has the same limits and counts apart from all others. It takes memory only while it
   * is in use, and for up to 20 seconds or a window afterwards, whichever is longer.
   * @throws InvalidArgumentError
   */
  key(key: string): KeyedBoxLimiter
  /**
   * Changes a limit for this box, for all keys, until the limiter is closed. Permits that were already given count.
   * Waiters keep waiting, but one that wants more permits than the limit is now is rejected with an
   * InvalidArgumentError. As long as other processes name another limit, both hold. A greater limit holds as soon as
   * all processes that named the old one name it, or five seconds after the last of them has named the old one.
   * @param per which of the limits, where there are several.
   * @throws InvalidArgumentError; ClosedError
   */
  setLimit(limit: number, per?: Duration): void
  /**
   * Gives no more permits in this box. Waiters here are rejected with a ClosedError, unless `drain` lets them have
   * their turn first; other processes continue. A permit in use counts for a `concurrency` until it is released.
   * Resolves when no waiter is left here.
   * @throws InvalidArgumentError
   */
  close(options?: LimiterCloseOptions): Promise<void>
}

/** What limiters need of their box. */
export interface LimiterSource extends Omit<ConcurrencyLimiterSource, 'meter'> {
  /** The box's session id. */
  readonly session: string
}

/** How long an unused entry is kept, in milliseconds. */
const FORGET = 10_000
/** No key is empty. */
const WHOLE = ''

/** One limiter of a box, with those of its keys. */
class Family {
  readonly byKey = new Map<string, BoxPermits>()
  usedAt = 0
  terms: BoxTerms

  /** @param made the terms that callers name; the terms that hold may have been set since. */
  constructor(readonly made: BoxTerms) {
    this.terms = made
  }
}

/** The limiters of a box by name. */
export class BoxLimiters {
  readonly #source: LimiterSource & ConcurrencyLimiterSource
  readonly #families = new Map<string, Family>()
  #sweeper: Timer | undefined
  #closed: ClosedError | undefined

  constructor(source: LimiterSource) {
    this.#source = { ...source, meter: new LatencyEstimator() }
  }

  get source(): LimiterSource {
    return this.#source
  }

  /**
   * @throws InvalidArgumentError for unfit options, or options other than those of a limiter of this name that is in
   * use.
   */
  limiter(name: string, options: BoxLimiterOptions): BoxLimiter {
    checkKey('name', name)
    checkLength(name, undefined)
    const terms = boxTerms(options)
    this.#family(name, terms)
    return new LimiterOfBox({ limiters: this, name, terms, closed: undefined })
  }

  /** @throws InvalidArgumentError */
  permits(name: string, terms: BoxTerms, key: string): BoxPermits {
    const known = this.#families.get(name)
    // The very same terms need no check.
    const permits = known?.made === terms ? known.byKey.get(key) : undefined
    return permits ?? this.#checkedPermits(name, terms, key)
  }

  /** @throws InvalidArgumentError */
  setLimit(name: string, terms: BoxTerms, limit: number, per: Duration | undefined): void {
    const family = this.#family(name, terms)
    family.terms = changedTerms(family.terms, limit, per)
    for (const permits of family.byKey.values()) permits.change(family.terms)
  }

  /**
   * Ends one limiter and those of its keys.
   * @param closed the error for later callers.
   * @param patience how long waiters may continue, in milliseconds.
   */
  async end(name: string, closed: ClosedError, patience: number): Promise<void> {
    const family = this.#families.get(name)
    if (!family) return
    this.#families.delete(name)
    const byKey = [...family.byKey.values()]
    for (const permits of byKey) permits.shut(closed)
    await endAll(byKey, patience, this.#source.clock)
  }

  /** Ends all limiters: the box is closed. */
  async close(): Promise<void> {
    this.#closed = new ClosedError('the box was closed', { engine: this.#source.engine })
    this.#sweeper?.cancel()
    const byKey = [...this.#families.values()].flatMap(family => [...family.byKey.values()])
    for (const permits of byKey) permits.shut(this.#closed)
    await endAll(byKey, 0, this.#source.clock)
  }

  #family(name: string, terms: BoxTerms): Family {
    let family = this.#families.get(name)
    if (family && family.made.signature !== terms.signature) {
      throw new InvalidArgumentError(
        `limiter ${shown(name)} is in use in this box with different options; close it first, or use another name`,
      )
    }
    if (!family) {
      family = new Family(terms)
      this.#families.set(name, family)
      this.#sweepLater()
    }
    family.usedAt = this.#source.clock.now()
    return family
  }

  #checkedPermits(name: string, terms: BoxTerms, key: string): BoxPermits {
    const { byKey, terms: current } = this.#family(name, terms)
    let permits = byKey.get(key)
    if (!permits) {
      const id = limiterId(name, key === WHOLE ? undefined : key)
      const Permits = current.concurrency === Infinity ? ReservationClient : ConcurrencyLimiter
      permits = new Permits(this.#source, current, id, key || name)
      byKey.set(key, permits)
      if (this.#closed) permits.shut(this.#closed)
    }
    return permits
  }

  #sweepLater(): void {
    if (this.#sweeper || this.#closed) return
    const sweep = (): void => {
      this.#sweeper = undefined
      this.#sweep(this.#source.clock.now() - FORGET)
      if (this.#families.size > 0) this.#sweepLater()
    }
    this.#sweeper = this.#source.clock.after(FORGET, sweep, false)
  }

  #sweep(since: number): void {
    for (const [name, { byKey, usedAt, made, terms }] of this.#families) {
      for (const [key, permits] of byKey) if (permits.isIdle(since)) byKey.delete(key)
      // A limit that was set is remembered, because no caller's options have it.
      if (byKey.size === 0 && usedAt < since && made === terms) this.#families.delete(name)
    }
  }
}

/**
 * Refuses what is too long for the key of a lock, also for a limiter without `concurrency`: another process, or a later
 * version of the program, may name it with one.
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

/** What a limiter and those of its keys have in common. */
interface Shared {
  readonly limiters: BoxLimiters
  readonly name: string
  readonly terms: BoxTerms
  closed: ClosedError | undefined
}

/**
 * The limiter of one key. It holds only name and options, so it can be kept forever while its counts are forgotten.
 */
class OfKey implements KeyedBoxLimiter {
  readonly #shared: Shared
  readonly #key: string

  constructor(shared: Shared, key: string) {
    this.#shared = shared
    this.#key = key
  }

  async tryAcquire(n?: number): Promise<Permit | undefined> {
    try {
      return await this.acquire(n, NOW)
    } catch (error) {
      if (error instanceof BusyError) return undefined
      throw error
    }
  }

  async decide(): Promise<BoxDecision> {
    const since = this.#now
    try {
      const { outcome, explanation } = await this.#with(permits => permits.decide())
      const permit = outcome instanceof BusyError ? undefined : outcome
      this.#publish(1, since, permit ? undefined : outcome)
      return { permit, explanation }
    } catch (error) {
      this.#publish(1, since, error)
      throw error
    }
  }

  acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    if (channels.permitted.hasSubscribers || channels.refused.hasSubscribers)
      return this.#acquirePublishing(n, options)
    return this.#acquire(n, options)
  }

  #acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    // This path is the busiest: no function is made for it.
    if (this.#shared.closed) return Promise.reject(this.#shared.closed)
    try {
      return this.#permits.acquire(n, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T> {
    return underPermit(() => this.acquire(n, options), task)
  }

  explain(n?: number): Promise<Explanation> {
    return this.#with(permits => permits.explain(n))
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

  /** Acquires, and publishes the outcome. */
  async #acquirePublishing(n = 1, options: AcquireOptions | undefined): Promise<Permit> {
    const since = this.#now
    try {
      const permit = await this.#acquire(n, options)
      this.#publish(n, since, undefined)
      return permit
    } catch (error) {
      this.#publish(n, since, error)
      throw error
    }
  }

  /** Notifies the subscribers of the outcome of a request. @param error undefined when the permits were given. */
  #publish(n: number, since: number, error: unknown): void {
    const event = { ...this.#event(), n, waited: this.#now - since }
    if (error === undefined) channels.permitted.publish(event satisfies PermittedEvent)
    else channels.refused.publish({ ...event, error } satisfies RefusedEvent)
  }

  get #now(): number {
    return this.#shared.limiters.source.clock.now()
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
    if (this.#shared.closed) return Promise.reject(this.#shared.closed)
    try {
      return task(this.#permits)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

class LimiterOfBox extends OfKey implements BoxLimiter {
  readonly #shared: Shared

  constructor(shared: Shared) {
    super(shared, WHOLE)
    this.#shared = shared
  }

  key(key: string): KeyedBoxLimiter {
    checkKey('key', key)
    checkLength(this.#shared.name, key)
    return new OfKey(this.#shared, key)
  }

  setLimit(limit: number, per?: Duration): void {
    const { closed, limiters, name, terms } = this.#shared
    if (closed) throw closed
    limiters.setLimit(name, terms, limit, per)
  }

  async close(options: LimiterCloseOptions = {}): Promise<void> {
    const drain = drainOf(options)
    const { limiters, name } = this.#shared
    const { engine } = limiters.source
    const closed = (this.#shared.closed ??= new ClosedError('the limiter was closed', { key: name, engine }))
    await limiters.end(name, closed, drain)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
