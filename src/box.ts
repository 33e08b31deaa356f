import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import { wallOf, type Clock } from './base/clock.js'
import { milliseconds, type Duration } from './base/duration.js'
import type { Engine, RequestReport } from './engine/contract.js'
import { InvalidArgumentError, shown } from './base/errors.js'
import { groupedBy } from './base/grouped.js'
import type { Guarantees } from './base/guarantees.js'
import { BoxLimiters, type BoxLimiter } from './limits/remote/box-limiter.js'
import type { BoxLimiterOptions } from './limits/remote/box-limiter-options.js'
import { keptLimiters, resumeLimiters, type LimiterReport } from './limits/remote/kept-limiters.js'
import { claimSet } from './core/claims.js'
import { checkKey } from './base/options.js'
import type { Claim } from './engine/claim.js'
import { MutexElection, type Election } from './election.js'
import { oncePer, type Once } from './once.js'
import { printedAs } from './base/printed.js'
import { needsReceiver } from './base/receiver.js'
import { Runs, RUNS } from './runs.js'
import { Schedules, type Schedule, type ScheduledTask, type ScheduleOptions } from './schedule.js'
import type { SlotOf, Slots, Times } from './slots.js'
import { numberOf, tokenOf, type Grant } from './core/grant.js'
import { grantName } from './core/lease.js'
import { ClaimSetLock, type Lock } from './core/lock.js'
import type { LockOptions } from './core/lock-options.js'
import { checkOptions, flag } from './base/options.js'
import { checkUnreserved } from './base/reserved-keys.js'
import { mutex, type Mutex } from './core/mutex.js'
import { readWriteLock, type ReadWriteLock } from './core/read-write-lock.js'
import { semaphore, type Semaphore, type SemaphoreOptions } from './core/semaphore.js'
import type { BoxState } from './core/health.js'
import { Session } from './core/session.js'
import { storeNames } from './store/list.js'
import { Store, type StoreOptions } from './store/store.js'

/** Options of a box. */
export interface BoxOptions {
  /** The label that `inspect()` shows for grants that have none of their own. */
  label?: string | undefined
  /**
   * Whether a task under `run` that would wait for itself, directly or through a cycle of exclusive and shared claims
   * of this box, gets a DeadlockError instead of waiting forever; default true. Cycles through permits that several
   * tasks hold, other boxes or grants from `acquire` are not detected. It costs an AsyncLocalStorage, see
   * `docs/guarantees.md`.
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
   * The fencing token; undefined for a waiter. For a holder in another box, the lowest ten bits, which number the local
   * turns, are 0.
   */
  readonly token: bigint | undefined
  /** Milliseconds since its request. */
  readonly age: number
  /** Milliseconds until it expires without a renewal. */
  readonly expiresIn: number
}

/** A key in use. */
export interface LockReport {
  readonly key: string
  readonly holders: readonly Party[]
  /** In the order in which they will get the lock. */
  readonly waiters: readonly Party[]
}

/** Options of {@link Box.inspect}. */
export interface InspectOptions {
  /** Only the key itself, not the keys that begin with it, for which some engines scan all keys; default false. */
  exact?: boolean | undefined
}

/** Options of {@link Box.close}. */
export interface CloseOptions {
  /**
   * Whether to wait until the grants in use, and the permits of limiters with a `concurrency`, are released: true to
   * wait without a limit, or the maximum wait. Default false.
   */
  drain?: boolean | Duration | undefined
}

/** An open connection to an engine: creates locks, elections, limiters and stores. */
export class Box implements AsyncDisposable {
  readonly #session: Session
  readonly #engine: Engine
  /** Created for the first limiter. */
  #limiters: BoxLimiters | undefined
  readonly #schedules = new Schedules()
  #closing: Promise<void> | undefined

  static {
    needsReceiver(this)
    printedAs(this, 'Box', ({ engine, session }) => ({ engine, session }))
  }

  /** Use `open`. */
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
    // On a command line, a leading dash would make it an option.
    const id = randomBytes(9).toString('base64url').replace(/^-/, '_')
    const member = { session: id, host: hostname(), pid: process.pid, label }
    const session = new Session(member, engine, clock, detectDeadlocks)
    await engine.join(member, session)
    session.health.become('ready')
    return new Box(session)
  }

  /** The engine as its URL names it, without passwords. */
  get engine(): string {
    return this.#engine.name
  }

  /** The promises that the engine keeps, and those that it weakens. */
  get guarantees(): Guarantees {
    return this.#engine.guarantees
  }

  /** The session ID of this box in the engine. Another box can `revoke` it. */
  get session(): string {
    return this.#session.id
  }

  /**
   * The state of the box, as the engine's last answer shows it. A box that sends nothing does not notice an outage; use
   * `ping`. Reading the state while it is `reconnecting` sends a ping, so that a later read shows when the engine is
   * back.
   */
  get state(): BoxState {
    return this.#session.health.state
  }

  /**
   * Acquires and releases a lock that no other box requests, and returns how long that took, in milliseconds. For
   * readiness probes.
   * @throws UnavailableError, ClosedError; IndeterminateError when the engine did not reply
   */
  async ping(): Promise<number> {
    const { clock } = this.#session
    const since = clock.now()
    await this.#session.ping()
    return clock.now() - since
  }

  /** Returns a mutex on one key, or on several together. @throws InvalidArgumentError */
  mutex(...keys: readonly string[]): Mutex {
    for (const key of keys) checkUnreserved('key', key)
    return mutex(this.#session, keys)
  }

  /** Returns a semaphore with `max` permits. @throws InvalidArgumentError */
  semaphore(key: string, options: SemaphoreOptions): Semaphore {
    checkUnreserved('key', key)
    return semaphore(this.#session, key, options)
  }

  /** Returns a lock that admits many readers or one writer. @throws InvalidArgumentError */
  readWriteLock(key: string): ReadWriteLock {
    checkUnreserved('key', key)
    return readWriteLock(this.#session, key)
  }

  /**
   * Returns a lock on any claims together, of which the other locks are special cases. The keys of elections and
   * limiters take only shared claims, by which a caller can wait until they are free.
   * @throws InvalidArgumentError
   */
  lock(...claims: readonly Claim[]): Lock {
    const set = claimSet(claims)
    for (const { key, mode } of set.claims) if (mode !== 'shared') checkUnreserved('key', key)
    return new ClaimSetLock(this.#session, set, 'lock')
  }

  /** Returns an election of one leader among all callers of the same name. @throws InvalidArgumentError */
  election(name: string): Election {
    checkKey('name', name)
    return new MutexElection(this.#session, name)
  }

  /**
   * Runs a task once per fleet for each slot, at its time. All processes call this method when they start; one of them
   * runs the task under the mutex `name`. It never runs twice at once. Ends with the box.
   *
   * ```ts
   * box.schedule('nightly', { cron: '0 3 * * *', timeZone: 'Europe/Vienna' }, (grant, slot) => report(slot.at))
   * box.schedule('sync', { every: '15m' }, grant => sync(grant.signal))
   * ```
   *
   * - A slot whose task fails is done. Errors are passed to `onError`.
   * - If the process dies or loses the grant during the run, another one runs the slot again, so that it runs at least
   *   once. A process that was not up when the slot began does not, without `catchUp`.
   * - Slots that begin during a run, or while no process is up, are skipped. With `catchUp`, the last one runs late.
   * - Slots begin by the clock of the engine's server; on memory and files, by the clock of the machine.
   *
   * The schedule keeps the process alive. `close` aborts `grant.signal`, and waits for the task, which must end then. A
   * schedule shares its record with `oncePer`.
   * @throws InvalidArgumentError also when this box has a schedule of this name; ClosedError
   */
  schedule(name: string, times: Times, task: ScheduledTask, options?: ScheduleOptions): Schedule {
    const parts = { session: this.#session, runs: this.runs(), lock: this.mutex(name) }
    return this.#schedules.start(parts, name, times, task, options)
  }

  /**
   * Runs a task once per fleet for the current slot. All processes call this method, for example when they start. One
   * runs the task under the mutex `name`; the others wait, and get `ran: false` when it is done. If the task fails or
   * its process dies, the next caller runs it. No task runs for a slot that has passed. The task gets the slot. If it
   * must not take effect twice, it can store the slot under a unique key.
   *
   * ```ts
   * const { ran } = await box.oncePer('migrate', 'release 8', () => migrate())
   * ```
   *
   * Slots begin by the clock of the engine's server; on memory and files, by the clock of the machine. The store
   * `signalbox-runs` keeps the last 100 slots of each name, also those of the command
   * `signalbox run --lock NAME --once-per`. To run a task at the times of its slots, use {@link schedule}.
   * @throws what `Lock.run` throws, and what a store throws if the box can't record that the task is done: then
   * `taskBegan` is true, and the task may run again. The `result` of a LostError is what this call would have returned.
   */
  async oncePer<T, S extends Slots = Slots>(
    name: string,
    slots: S,
    task: (grant: Grant, slot: SlotOf<S>) => T | Promise<T>,
    options?: LockOptions,
  ): Promise<Once<T, S>> {
    return oncePer(this.mutex(name), this.runs(), name, slots, task, options)
  }

  /**
   * Returns the record of the slots whose tasks are done.
   * @internal
   */
  runs(): Runs {
    // No events about writes: the caller writes nothing itself, and the lock publishes its own events.
    const store = new Store(this.#session, RUNS, {}, false)
    return new Runs(store, () => this.#session.wallClock(), wallOf(this.#session.clock))
  }

  /** Returns a store of versioned values, with transactions. @throws InvalidArgumentError */
  store(name: string, options?: StoreOptions): Store {
    checkUnreserved('store', name)
    return new Store(this.#session, name, options)
  }

  /**
   * Yields the names of the stores that have values in the engine, or had some until shortly before. Each search finds
   * up to 10,000 keys, and passes over the rest of a larger store.
   * @throws InvalidArgumentError on an engine without values; UnavailableError, ClosedError; IndeterminateError when the
   * engine did not reply
   */
  async *stores(): AsyncGenerator<string, void, void> {
    yield* storeNames(this.#session)
  }

  /**
   * Returns a rate limiter that all processes on the same engine share. It is exact in any window, by the engine's
   * clock. Callers of a process are served in order, and processes take turns. All processes should pass the same
   * options; otherwise the limits of all of them apply.
   * @throws InvalidArgumentError also when the engine has no shared clock, or when this box uses a limiter of this name
   * with other options
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
        // A request without units only returns permits that were reserved and not used.
        return ending && request.units.length > 0 ? Promise.reject(ending) : engine.reservePermits!(request)
      },
      lock: claim => new ClaimSetLock(this.#session, claimSet([claim]), 'concurrency'),
    })
    return this.#limiters.limiter(name, options)
  }

  /**
   * Yields the keys in use that begin with `prefix`, with their holders and waiters, all at the same moment.
   * @throws InvalidArgumentError, UnavailableError, ClosedError; IndeterminateError when the engine did not reply
   */
  async *inspect(prefix = '', options: InspectOptions = {}): AsyncGenerator<LockReport, void, void> {
    if (typeof prefix !== 'string')
      throw new InvalidArgumentError(`prefix must be a string, not ${shown(prefix)}`)
    checkOptions(options, ['exact'], '{ exact: true }')
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
   * Yields the limiters whose names begin with `prefix`, and their keys, if they have permits in use, are paused or
   * have waiters. Scans all limiters of the engine. Yields none on an engine without limits.
   * @throws InvalidArgumentError, UnavailableError, ClosedError; IndeterminateError when the engine did not reply
   */
  async *limiters(prefix = ''): AsyncGenerator<LimiterReport, void, void> {
    if (typeof prefix !== 'string')
      throw new InvalidArgumentError(`prefix must be a string, not ${shown(prefix)}`)
    yield* await keptLimiters(this.#engine, prefix)
  }

  /**
   * Ends the pause of a limiter and the pauses of all its keys, in all processes, on behalf of an operator. Returns the
   * number of pauses that it has ended. It does not need the options of the limiter. Scans all limiters of the engine.
   * @param key ends only the pause of this key.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async resumeLimiter(name: string, key?: string): Promise<number> {
    checkKey('name', name)
    if (key !== undefined) checkKey('key', key)
    return resumeLimiters(this.#engine, this.#session.id, name, key)
  }

  /**
   * Releases the grant with this token by force, on behalf of an operator: its holder loses it. Returns false, and does
   * nothing, if no such grant holds the key. The tasks of a box use one lease in turns, which the lowest ten bits of
   * the token distinguish. In the box that holds the key, the whole token must match. In other boxes these bits are
   * ignored: the holding box loses its lease, whichever task uses it.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async forceRelease(key: string, token: bigint): Promise<boolean> {
    checkKey('key', key)
    if (typeof token !== 'bigint')
      throw new InvalidArgumentError(`token must be a bigint, not ${shown(token)}`)
    const number = numberOf(token)
    const lease = this.#session.keeper.inUse().get(grantName(key, number))
    if (lease) {
      if (!lease.users.some(({ turn }) => tokenOf(number, turn) === token)) return false
      lease.forceReleased = true
    }
    return this.#session.submit({ type: 'forceRelease', key, number })
  }

  /**
   * Removes all grants and waiting requests of a session, without waiting for its leases to expire, and returns their
   * number. For supervisors that know that the process is dead. A session that is alive loses its grants.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  async revoke(session: string): Promise<number> {
    checkKey('session', session)
    return this.#session.submit({ type: 'revoke', session })
  }

  /**
   * Ends the session and its schedules. Waiters are rejected with a ClosedError, and grants that are still held are
   * released. Waits for running tasks of schedules, whose grants are lost. Closing twice is harmless. A close without
   * `drain` ends one that is still draining, and one with a maximum limits it.
   * @throws InvalidArgumentError
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkOptions(options, ['drain'], '{ drain: true }')
    const { drain = false } = options
    const max =
      typeof drain === 'boolean' ? drain && Infinity : milliseconds('drain', drain, { min: 0, max: Infinity })
    const scheduled = this.#schedules.end()
    if (max === false) this.#session.close()
    const closing = (this.#closing ??= this.#close(max !== false, scheduled))
    if (max === false || max === Infinity) return closing
    const timer = this.#session.clock.after(max, () => this.#session.close(), true)
    await closing.finally(() => timer.cancel())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** @param scheduled settles when no schedule runs its task. */
  async #close(drain: boolean, scheduled: Promise<void>): Promise<void> {
    if (drain) await this.#session.drain()
    await this.#limiters?.close()
    this.#session.close()
    await scheduled
    await this.#engine.leave()
  }
}

function party(
  { session, host, pid, label, claim, age, expiresIn }: RequestReport,
  token: bigint | undefined,
): Party {
  return { session, host, pid, label, claim, token, age, expiresIn }
}
