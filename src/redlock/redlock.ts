import { EventEmitter } from 'node:events'
import { type Box, type Grant, type LockOptions, open } from '../index.js'
import { systemClock, type Timer } from '../clock.js'
import { BusyError, InvalidArgumentError, shown, TimedOutError } from '../errors.js'
import { ExecutionError, ResourceLockedError, type ExecutionResult, type ExecutionStats } from './errors.js'

/** How long to wait. Further settings of redlock, which this does not need, are accepted and ignored. */
export interface Settings {
  /**
   * With `retryDelay`: how long `acquire` waits in the queue is the one times the other; -1 for as long as it takes.
   */
  readonly retryCount: number
  /** Milliseconds. */
  readonly retryDelay: number
  readonly retryJitter: number
  readonly driftFactor: number
  readonly automaticExtensionThreshold: number
}

/** A client of one server, of `ioredis` or `redis`. */
export interface RedlockClient {
  quit(): Promise<unknown>
}

/** Aborts when the lock is lost, and has the error. */
export type RedlockAbortSignal = AbortSignal & { error?: Error }

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
}

const MIN_LEASE = 20
const MAX_LEASE = 86_400_000

/**
 * The class of the package redlock, version 5, over a box: with one client on its server, with three or more on a
 * quorum of theirs. Excludes processes that use redlock on the same servers, and is excluded by them.
 *
 * A waiter queues instead of trying again, so `retryCount` and `retryDelay` say how long it waits. A box
 * renews the lease of a lock while the process lives and gives the lock back at its `expiration`.
 */
export class Redlock extends EventEmitter {
  readonly clients: ReadonlySet<RedlockClient>
  readonly settings: Settings
  readonly #ends = new WeakMap<Grant, Timer>()
  #box: Promise<Box> | undefined

  /** @throws Error when there is no client; InvalidArgumentError for an invalid `retryCount` or `retryDelay` */
  constructor(clients: Iterable<RedlockClient>, settings: Partial<Settings> = {}) {
    super()
    // As with redlock, a listener is optional.
    this.on('error', () => undefined)
    this.clients = new Set(clients)
    if (this.clients.size === 0)
      throw new Error('Redlock must be instantiated with at least one redis client.')
    const given = Object.entries(settings).filter(([, value]) => value !== undefined)
    this.settings = { ...DEFAULTS, ...Object.fromEntries(given) }
    checkRetries(this.settings)
  }

  /**
   * Locks all resources together for `duration` milliseconds.
   * @throws ExecutionError when they were not available in the time that the settings give; InvalidArgumentError for
   * unfit clients or resources
   */
  async acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration)
    return this.#lockFor(resources, await this.#acquire(resources, duration, settings), duration)
  }

  /**
   * Unlocks the resources.
   * @throws ExecutionError when the lock had expired or was released before
   */
  async release(lock: Lock, _settings?: Partial<Settings>): Promise<ExecutionResult> {
    const { grant } = lock
    lock.expiration = 0
    this.#ends.get(grant)?.cancel()
    try {
      grant.assertHeld()
      await grant.release()
    } catch (error) {
      throw this.#failed(error)
    }
    return { attempts: [] }
  }

  /**
   * Has the lock last for `duration` milliseconds from now on. `existing` cannot be used again.
   * The lease on the server stays as long as `acquire` made it, and is renewed until then while the process runs.
   * @throws ExecutionError when it had expired or was released before
   */
  async extend(existing: Lock, duration: number, _settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration)
    if (existing.expiration < Date.now())
      throw new ExecutionError('Cannot extend an already-expired lock.', [])
    const { grant, resources } = existing
    try {
      grant.assertHeld()
    } catch (error) {
      throw this.#failed(error)
    }
    existing.expiration = 0
    return this.#lockFor(resources, grant, duration)
  }

  /**
   * Calls the routine with the resources locked for as long as it takes, releases them, and gives what the routine
   * gave. A release that fails never takes the place of what the routine gave or threw.
   * @throws what the routine throws; ExecutionError when the resources were not available in time, or were lost before
   * the routine ended: its `cause` says which, by `taskBegan` and `taskEnded`, and has the `result`
   */
  async using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings> | ((signal: RedlockAbortSignal) => Promise<T>),
    routine?: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T> {
    checkDuration(duration)
    const [task, given] = typeof settings === 'function' ? [settings, undefined] : [routine, settings]
    if (typeof task !== 'function') throw new Error('INVARIANT: routine is not a function.')
    let isOwn = false
    const underGrant = async (grant: Grant): Promise<T> => {
      try {
        return await task(this.#signalOf(grant))
      } catch (error) {
        isOwn = true
        throw error
      }
    }
    try {
      const box = await this.#opened()
      return await box.mutex(...resources).run(underGrant, this.#options(duration, given))
    } catch (error) {
      throw isOwn ? error : this.#failed(error)
    }
  }

  /** Closes the box and quits the clients. */
  async quit(): Promise<void> {
    await (await this.#box)?.close()
    await Promise.all([...this.clients].map(client => client.quit()))
  }

  async #acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Grant> {
    try {
      const options = this.#options(duration, settings)
      const box = await this.#opened()
      return await box.mutex(...resources).acquire(options)
    } catch (error) {
      throw this.#failed(error)
    }
  }

  #options(duration: number, settings: Partial<Settings> = {}): LockOptions {
    const { retryCount = this.settings.retryCount, retryDelay = this.settings.retryDelay } = settings
    checkRetries({ retryCount, retryDelay })
    return {
      lease: Math.min(Math.max(duration, MIN_LEASE), MAX_LEASE),
      ...(retryCount === -1 ? {} : { wait: retryCount * retryDelay }),
    }
  }

  #opened(): Promise<Box> {
    return (this.#box ??= this.#open())
  }

  async #open(): Promise<Box> {
    const [first, ...others] = this.clients
    try {
      const given = others.length === 0 ? { redis: first! } : { redisQuorum: [...this.clients] }
      // A routine of redlock may leave behind what waits for the lock that the routine has.
      return await open(given, { detectDeadlocks: false })
    } catch (error) {
      // The next call tries again.
      this.#box = undefined
      throw error
    }
  }

  #signalOf(grant: Grant): RedlockAbortSignal {
    const controller = new AbortController()
    const signal: RedlockAbortSignal = controller.signal
    grant.signal.addEventListener('abort', () => {
      signal.error = this.#failed(grant.signal.reason)
      controller.abort(signal.error)
    })
    return signal
  }

  #lockFor(resources: string[], grant: Grant, duration: number): Lock {
    const lock = new Lock(this, resources, grant, Date.now() + duration)
    grant.signal.addEventListener('abort', () => (lock.expiration = 0))
    this.#ends.get(grant)?.cancel()
    const end = systemClock.after(duration, () => void grant.release().catch(() => undefined), false)
    this.#ends.set(grant, end)
    return lock
  }

  #failed(error: unknown): Error {
    if (error instanceof InvalidArgumentError) return error
    const busy = error instanceof BusyError || error instanceof TimedOutError
    const cause = busy ? new ResourceLockedError(error.message, { cause: error }) : error
    this.emit('error', cause)
    const message = 'The operation was unable to achieve a quorum during its retry window.'
    return new ExecutionError(message, [], { cause })
  }
}

/** Resources that are locked until `expiration`. */
export class Lock {
  /** Always empty. */
  readonly attempts: readonly Promise<ExecutionStats>[] = []

  /**
   * @param grant parts that redlock lacks: the fencing token, the signal of a loss, `assertHeld()`.
   * @param expiration milliseconds of the wall clock; 0 once it was released, extended or lost.
   */
  constructor(
    readonly redlock: Redlock,
    readonly resources: string[],
    readonly grant: Grant,
    public expiration: number,
  ) {}

  /** What distinguishes this lock from all others: its fencing token. */
  get value(): string {
    return String(this.grant.token)
  }

  /** As {@link Redlock.release}. */
  release(): Promise<ExecutionResult> {
    return this.redlock.release(this)
  }

  /** As {@link Redlock.extend}. */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration)
  }
}

/** A text or nothing times a number would be some wait, often none. @throws InvalidArgumentError */
function checkRetries({ retryCount, retryDelay }: Pick<Settings, 'retryCount' | 'retryDelay'>): void {
  if (!Number.isInteger(retryCount) || retryCount < -1)
    throw new InvalidArgumentError(`retryCount must be a whole number, -1 or more, not ${shown(retryCount)}`)
  if (!Number.isFinite(retryDelay) || retryDelay < 0)
    throw new InvalidArgumentError(`retryDelay must be milliseconds, 0 or more, not ${shown(retryDelay)}`)
}

function checkDuration(duration: number): void {
  if (!Number.isInteger(duration)) throw new Error('Duration must be an integer value in milliseconds.')
}
