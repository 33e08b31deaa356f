import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import { wallOf, type Clock } from './clock.js'
import { milliseconds, type Duration } from './duration.js'
import type { Engine, RequestReport } from './engine/contract.js'
import { InvalidArgumentError, shown } from './errors.js'
import { groupedBy } from './grouped.js'
import type { Guarantees } from './guarantees.js'
import { BoxLimiters, type BoxLimiter } from './limits/remote/box-limiter.js'
import type { BoxLimiterOptions } from './limits/remote/box-limiter-options.js'
import { keptLimiters, resumeLimiters, type LimiterReport } from './limits/remote/kept-limiters.js'
import { claimSet } from './core/claims.js'
import { checkKey } from './options.js'
import type { Claim } from './engine/claim.js'
import { election, type Election } from './election.js'
import { oncePer, Runs, RUNS, type Once, type Slots } from './once.js'
import { numberOf, tokenOf, type Grant } from './core/grant.js'
import { grantName } from './core/lease.js'
import { ClaimSetLock, type Lock } from './core/lock.js'
import type { LockOptions } from './core/lock-options.js'
import { checkOptions, flag } from './options.js'
import { checkUnreserved } from './reserved-keys.js'
import { mutex, type Mutex } from './core/mutex.js'
import { readWriteLock, type ReadWriteLock } from './core/read-write-lock.js'
import { semaphore, type Semaphore, type SemaphoreOptions } from './core/semaphore.js'
import type { BoxState } from './core/health.js'
import { Session } from './core/session.js'
import { Store, type StoreOptions } from './store/store.js'

/** Options of a box. */
export interface BoxOptions {
  /** The label that `inspect()` shows for grants that have none of their own. */
  label?: string | undefined
  /**
   * Whether tasks are followed through `run`; default true. Then a task that would wait for itself, directly or round a
   * circle of exclusive and shared claims of this box, gets a DeadlockError instead of waiting forever. Circles over
   * permits that several tasks hold, over other boxes and over grants from `acquire` are not found. It costs an
   * AsyncLocalStorage, see `docs/guarantees.md`.
   */
  detectDeadlocks?: boolean | undefined
}

/** The names of these options. */
export const BOX_OPTIONS = ['label', 'detectDeadlocks'] as const

/** A holder of a key, or a waiter for it. */
export interface Party {
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  readonly claim: Claim
  /**
   * The fencing token; undefined for a waiter. For a holder in another box it lacks the local turn, which is in the
   * lowest ten bits.
   */
  readonly token: bigint | undefined
  /** Milliseconds since it made its request. */
  readonly age: number
  /** Milliseconds until it expires, unless its box renews it. */
  readonly expiresIn: number
}

/** A key in use. */
export interface LockReport {
  readonly key: string
  readonly holders: readonly Party[]
  /** In the order in which they will be served. */
  readonly waiters: readonly Party[]
}

/** Options of {@link Box.inspect}. */
export interface InspectOptions {
  /** Only the key itself, not those that begin with it; default false. Some engines look through all keys for these. */
  exact?: boolean | undefined
}

/** Options of closing a box. */
export interface CloseOptions {
  /**
   * Whether to wait until the grants in use, and the permits of limiters with a `concurrency`, are released: true for
   * as long as it takes, or the longest time to wait. Default: don't wait.
   */
  drain?: boolean | Duration | undefined
}

/** An open connection to an engine, and all locks, limiters and stores that are reached through it. */
export class Box implements AsyncDisposable {
  readonly #session: Session
  readonly #engine: Engine
  /** Made for the first limiter. */
  #limiters: BoxLimiters | undefined
  #closing: Promise<void> | undefined

  /** Boxes come from `open`. */
  private constructor(session: Session) {
    this.#session = session
    this.#engine = session.engine
  }

  /**
   * Joins an engine.
   * @throws InvalidArgumentError, UnavailableError
   */
  static async join(engine: Engine, clock: Clock, options: BoxOptions = {}): Promise<Box> {
    checkOptions(options, BOX_OPTIONS)
    const { label } = options
    if (label !== undefined) checkKey('label', label)
    const detectDeadlocks = flag('detectDeadlocks', options.detectDeadlocks, true)
    // On a command line a dash at the beginning would make it an option.
    const id = randomBytes(9).toString('base64url').replace(/^-/, '_')
    const member = { session: id, host: hostname(), pid: process.pid, label }
    const session = new Session(member, engine, clock, detectDeadlocks)
    await engine.join(member, session)
    session.health.begin()
    return new Box(session)
  }

  /** What the engine promises, and how it weakens which promises. */
  get guarantees(): Guarantees {
    return this.#engine.guarantees
  }

  /** The id under which this box holds and waits; another box can `revoke` it. */
  get session(): string {
    return this.#session.id
  }

  /**
   * What is known of the engine, as of its last answer. Reading this after a failure has the engine asked again, so a
   * later read finds it ready. A box that asks nothing learns of no failure: `ping` asks.
   */
  get state(): BoxState {
    return this.#session.health.state
  }

  /**
   * Asks the engine for a lock that no other box wants, and gives it back: for readiness probes. Resolves with the
   * milliseconds that took.
   * @throws UnavailableError, ClosedError; IndeterminateError when the answer never came
   */
  async ping(): Promise<number> {
    const { clock } = this.#session
    const since = clock.now()
    await this.#session.ping()
    return clock.now() - since
  }

  /** Mutual exclusion over one key or several together. @throws InvalidArgumentError */
  mutex(...keys: readonly string[]): Mutex {
    for (const key of keys) checkUnreserved('key', key)
    return mutex(this.#session, keys)
  }

  /** A number of permits under one key. @throws InvalidArgumentError */
  semaphore(key: string, options: SemaphoreOptions): Semaphore {
    checkUnreserved('key', key)
    return semaphore(this.#session, key, options)
  }

  /** Many readers together or one writer alone. @throws InvalidArgumentError */
  readWriteLock(key: string): ReadWriteLock {
    checkUnreserved('key', key)
    return readWriteLock(this.#session, key)
  }

  /**
   * Any claims together. The other locks are made of this one. The locks of elections and limiters take shared claims
   * only, by which a caller can wait until they are free.
   * @throws InvalidArgumentError
   */
  lock(...claims: readonly Claim[]): Lock {
    const set = claimSet(claims)
    for (const { key, mode } of set.claims) if (mode !== 'shared') checkUnreserved('key', key)
    return new ClaimSetLock(this.#session, set, 'lock')
  }

  /** One leader among many. @throws InvalidArgumentError */
  election(name: string): Election {
    checkKey('name', name)
    return election(this.#session, name)
  }

  /**
   * Does a task once in a fleet for each slot. All processes call it, for instance by a timer; one runs the task under
   * the mutex `name`, the others wait until it is done and learn that. A task that fails, or whose process dies, is not
   * done: the next caller does it. Nothing is done for a slot that is over. The task is given the slot's name: where it
   * must not take effect twice, it writes that down under a unique key.
   *
   * ```ts
   * const { ran } = await box.oncePer('nightly', { cron: '0 3 * * *' }, () => report())
   * ```
   *
   * Slots begin by the clock of the engine's server; over memory and files, by that of the machine. The last 100 slots
   * of a name are kept in the store `signalbox-runs`, where the command `signalbox run --lock NAME --once-per` keeps
   * them, too.
   * @throws what `Lock.run` throws, and what a store throws when it can't be written that the task was done: then
   * `taskBegan` is true, and the task may run again. The `result` of a LostError is what this would have returned.
   */
  async oncePer<T>(
    name: string,
    slots: Slots,
    task: (grant: Grant, slot: string) => T | Promise<T>,
    options?: LockOptions,
  ): Promise<Once<T>> {
    return oncePer({ lock: this.mutex(name), runs: this.runs() }, name, slots, task, options)
  }

  /**
   * For which slots tasks were done.
   * @internal
   */
  runs(): Runs {
    // No events about writes: a listener gets those of the lock, and the caller has written nothing itself.
    const store = new Store(this.#session, RUNS, {}, false)
    return new Runs(store, () => this.#session.wallClock(), wallOf(this.#session.clock))
  }

  /** Versioned values and transactions over them. @throws InvalidArgumentError */
  store(name: string, options?: StoreOptions): Store {
    checkUnreserved('store', name)
    return new Store(this.#session, name, options)
  }

  /**
   * A rate limit for all processes that open a box on the same engine: exact in any window by the engine's clock.
   * Within a process it is first come, first served, and processes take turns. All processes should give the same
   * options. While some give other ones, the limits of all of them hold.
   * @throws InvalidArgumentError also when the engine has no shared clock, or when a limiter of this name is in use in
   * this box with other options
   */
  limiter(name: string, options: BoxLimiterOptions): BoxLimiter {
    const engine = this.#engine
    if (!engine.reservePermits) {
      throw new InvalidArgumentError(
        `${engine.name} has no shared clock to measure a limit by: open a box on files, PostgreSQL or one Redis server for limits, or give each process its share with limiter() of signalbox/limits`,
        { engine: engine.name },
      )
    }
    this.#limiters ??= new BoxLimiters({
      clock: this.#session.clock,
      engine: engine.name,
      session: this.#session.id,
      ask: request => {
        const { ending } = this.#session
        // Reserved permits that were not used are still returned.
        return ending && request.units.length > 0 ? Promise.reject(ending) : engine.reservePermits!(request)
      },
      lock: claim => new ClaimSetLock(this.#session, claimSet([claim]), 'concurrency'),
    })
    return this.#limiters.limiter(name, options)
  }

  /**
   * The keys in use that begin with `prefix`, with holders and waiters, all as of the same moment.
   * @throws InvalidArgumentError, UnavailableError, ClosedError; IndeterminateError when the answer never came
   */
  async *inspect(prefix = '', options: InspectOptions = {}): AsyncGenerator<LockReport, void, void> {
    if (typeof prefix !== 'string')
      throw new InvalidArgumentError(`prefix must be a string, not ${shown(prefix)}`)
    checkOptions(options, ['exact'])
    const exact = flag('exact', options.exact, false)
    if (exact) checkKey('prefix', prefix)
    const requests = await this.#session.submit({ type: 'inspect', prefix, exact })
    const own = this.#session.keeper.inUse()
    const turnOf = ({ key, number }: RequestReport): number => own.get(grantName(key, number))?.turn ?? 0
    for (const [key, all] of groupedBy(requests, request => request.key)) {
      yield {
        key,
        holders: all
          .filter(({ phase }) => phase === 'held')
          .map(request => party(request, tokenOf(request.number, turnOf(request)))),
        waiters: all.filter(({ phase }) => phase !== 'held').map(request => party(request, undefined)),
      }
    }
  }

  /**
   * The limiters whose names begin with `prefix`, and their keys, as far as they count something now, are paused or
   * have waiters. Looks through all limiters of the engine. Gives none on an engine without limits.
   * @throws InvalidArgumentError, UnavailableError, ClosedError; IndeterminateError when the answer never came
   */
  async *limiters(prefix = ''): AsyncGenerator<LimiterReport, void, void> {
    if (typeof prefix !== 'string')
      throw new InvalidArgumentError(`prefix must be a string, not ${shown(prefix)}`)
    yield* await keptLimiters(this.#engine, prefix)
  }

  /**
   * An operator's resume: ends the pause of a limiter and the pauses of all its keys, in all processes. It needs no
   * options of the limiter. Returns the number of pauses it has ended. Looks through all limiters of the engine.
   * @param key only the pause of this key.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async resumeLimiter(name: string, key?: string): Promise<number> {
    checkKey('name', name)
    if (key !== undefined) checkKey('key', key)
    return resumeLimiters(this.#engine, this.#session.id, name, key)
  }

  /**
   * An operator's release: takes the grant with this token away from the holder of the key. False when no such grant
   * holds the key; then no grant is touched. The tasks of a box use one lease in turns, and the lowest ten bits of the
   * token distinguish these turns. In the box that holds the key, the whole token must match. From another box these
   * bits are ignored: the lease of the holding box is taken away, whichever of its tasks uses it.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async forceRelease(key: string, token: bigint): Promise<boolean> {
    checkKey('key', key)
    if (typeof token !== 'bigint')
      throw new InvalidArgumentError(`token must be a bigint, not ${shown(token)}`)
    const number = numberOf(token)
    const lease = this.#session.keeper.inUse().get(grantName(key, number))
    if (lease) {
      if (tokenOf(number, lease.turn) !== token) return false
      lease.forceReleased = true
    }
    return this.#session.submit({ type: 'forceRelease', key, number })
  }

  /**
   * Takes away all that a session holds and waits for, without waiting for its leases. For supervisors that know that
   * the process is dead. Returns the number of these requests. A session that is still alive finds its grants lost.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async revoke(session: string): Promise<number> {
    checkKey('session', session)
    return this.#session.submit({ type: 'revoke', session })
  }

  /**
   * Ends the session. Waiters are rejected with a ClosedError, and grants that are still held are given back. Closing
   * twice is harmless. Closing without `drain` ends a close that still drains.
   * @throws InvalidArgumentError
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkOptions(options, ['drain'])
    const { drain = false } = options
    const max =
      typeof drain === 'boolean' ? drain && Infinity : milliseconds('drain', drain, { min: 0, max: Infinity })
    if (max === false) this.#session.close()
    await (this.#closing ??= this.#close(max))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** @param max how long to drain, in milliseconds. False: the session has been closed without draining. */
  async #close(max: number | false): Promise<void> {
    if (max !== false) await this.#drained(max)
    await this.#limiters?.close()
    this.#session.close()
    await this.#engine.leave()
  }

  async #drained(max: number): Promise<void> {
    const drained = this.#session.drain()
    if (max === Infinity) return drained
    await new Promise<void>(resolve => {
      const timer = this.#session.clock.after(max, resolve, true)
      void drained.then(() => {
        timer.cancel()
        resolve()
      })
    })
  }
}

function party(
  { session, host, pid, label, claim, age, expiresIn }: RequestReport,
  token: bigint | undefined,
): Party {
  return { session, host, pid, label, claim, token, age, expiresIn }
}
