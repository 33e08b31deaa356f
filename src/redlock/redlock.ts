import { EventEmitter } from 'node:events'
import type { Grant, LockOptions } from '../index.js'
import { systemClock, type Timer } from '../base/clock.js'
import { BusyError, InvalidArgumentError, MissingPackageError, shown, TimedOutError } from '../base/errors.js'
import { endValue, valueOf, type RedlockClient } from './client.js'
import { ExecutionError, ResourceLockedError, type ExecutionResult, type ExecutionStats } from './errors.js'
import { expirationOf, settingsOf, waitOf, type Settings } from './settings.js'
import { sharedBox, type SharedBox } from './shared-box.js'

/** Aborts when the lock is lost. `error` is then the reason. */
export type RedlockAbortSignal = AbortSignal & { error?: Error }

const MIN_LEASE = 20
const MAX_LEASE = 86_400_000

/**
 * The class of the package redlock, version 5, over a box. One client stands for its server, and three or more clients
 * for a quorum of their servers, which needs the package `signalbox-redis-quorum`. Locks exclude those of processes that use redlock on the same servers, and the
 * reverse.
 *
 * A waiter queues instead of retrying, so `retryCount`, `retryDelay` and `retryJitter` determine how long it waits.
 * Instances with the same clients share one box. The box renews the lease of a lock while the process lives, and
 * releases the lock at its `expiration`.
 */
export class Redlock extends EventEmitter {
  readonly clients: ReadonlySet<RedlockClient>
  readonly settings: Settings
  readonly #shared: SharedBox

  /** @throws Error when there is no client; InvalidArgumentError for a setting that is not a number */
  constructor(clients: Iterable<RedlockClient>, settings: Partial<Settings> = {}) {
    super()
    // As with redlock, a listener is optional.
    this.on('error', () => undefined)
    this.clients = new Set(clients)
    if (this.clients.size === 0)
      throw new Error('Redlock must be instantiated with at least one redis client.')
    this.settings = settingsOf(settings)
    this.#shared = sharedBox(this.clients)
  }

  /**
   * Locks all resources together for `duration` milliseconds.
   * @throws ExecutionError when they were not available in the time that the settings allow; InvalidArgumentError for
   * invalid clients or resources
   */
  async acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration)
    const grant = await this.#acquire(resources, duration, settings)
    const value = await this.#valueOf(grant)
    const lock = this.#lockFor(resources, grant, value, duration)
    const held = { grant, lock, end: this.#endAfter(duration, grant, value) }
    this.#shared.held.set(value, held)
    grant.signal.addEventListener('abort', () => {
      held.lock.expiration = 0
      this.#shared.held.delete(value)
    })
    return lock
  }

  /**
   * Releases the resources. A lock that the program has constructed is released by its value.
   * @throws ExecutionError when the lock had expired or was released before
   */
  async release(lock: Lock, _settings?: Partial<Settings>): Promise<ExecutionResult> {
    const { resources, value } = lock
    lock.expiration = 0
    const held = this.#shared.held.get(value)
    if (!held) {
      await this.#byValue(resources, value)
      return { attempts: [] }
    }
    held.end.cancel()
    this.#shared.held.delete(value)
    try {
      held.grant.assertHeld()
      await held.grant.release()
    } catch (error) {
      throw this.#failed(error)
    }
    return { attempts: [] }
  }

  /**
   * Extends the lock to `duration` milliseconds from now. `existing` cannot be used again. The lease on the server
   * keeps the length from `acquire`. It is renewed until the lock expires, while the process runs.
   * @throws ExecutionError when it had expired or was released before
   */
  async extend(existing: Lock, duration: number, _settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration)
    const start = Date.now()
    if (existing.expiration < start) throw new ExecutionError('Cannot extend an already-expired lock.', [])
    const { resources, value } = existing
    const held = this.#shared.held.get(value)
    if (!held) {
      await this.#byValue(resources, value, duration)
      existing.expiration = 0
      return new Lock(this, resources, value, [], expirationOf(start, duration, this.settings))
    }
    const { grant } = held
    try {
      grant.assertHeld()
    } catch (error) {
      throw this.#failed(error)
    }
    held.end.cancel()
    held.end = this.#endAfter(duration, grant, value)
    const lock = this.#lockFor(resources, grant, value, duration)
    held.lock = lock
    // As in redlock, another call in the same tick also extends the lock.
    await Promise.resolve()
    existing.expiration = 0
    return lock
  }

  /**
   * Calls the routine with the resources locked until it ends, releases them, and returns the result of the routine. A
   * failed release never replaces the result or the error of the routine.
   * @throws the error of the routine; ExecutionError when the resources were not available in time, or were lost before
   * the routine ended. Its `cause` says which by `taskBegan` and `taskEnded`, and has the `result`
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
      const box = await this.#shared.opened()
      return await box.mutex(...resources).run(underGrant, this.#options(duration, given))
    } catch (error) {
      throw isOwn ? error : this.#failed(error)
    }
  }

  /** Quits the clients, and releases the locks of all instances with the same clients. */
  async quit(): Promise<void> {
    await this.#shared.close()
    await Promise.all([...this.clients].map(client => client.quit()))
  }

  async #acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Grant> {
    try {
      if (!Array.isArray(resources))
        throw new InvalidArgumentError(`the resources must be a list like ['a'], not ${shown(resources)}`)
      const options = this.#options(duration, settings)
      const box = await this.#shared.opened()
      // Each lock has a value of its own in Redis, by which it can be released.
      return await box.mutex(...resources).acquire({ ...options, ownRequest: true })
    } catch (error) {
      throw this.#failed(error)
    }
  }

  #options(duration: number, settings?: Partial<Settings>): LockOptions {
    const wait = waitOf(settingsOf(settings, this.settings))
    return {
      lease: Math.min(Math.max(duration, MIN_LEASE), MAX_LEASE),
      ...(wait < Infinity && { wait }),
    }
  }

  /** @throws ExecutionError when the value can't be read while the lock is held. The lock is then released. */
  async #valueOf(grant: Grant): Promise<string> {
    try {
      const value = await Promise.race([valueOf(this.clients, grant.keys[0]!), lossOf(grant)])
      grant.assertHeld()
      if (value === undefined) throw changed(grant.keys)
      return value
    } catch (error) {
      void grant.release().catch(() => undefined)
      throw this.#failed(error)
    }
  }

  async #byValue(resources: readonly string[], value: string, duration?: number): Promise<void> {
    if (await endValue(this.clients, resources, value, duration)) return
    throw this.#failed(changed(resources))
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

  #lockFor(resources: string[], grant: Grant, value: string, duration: number): Lock {
    return new Lock(this, resources, value, [], Date.now() + duration, grant)
  }

  #endAfter(duration: number, grant: Grant, value: string): Timer {
    const end = (): void => {
      this.#shared.held.delete(value)
      void grant.release().catch(() => undefined)
    }
    return systemClock.after(duration, end, false)
  }

  #failed(error: unknown): Error {
    if (error instanceof InvalidArgumentError || error instanceof MissingPackageError) return error
    const busy = error instanceof BusyError || error instanceof TimedOutError
    const cause = busy ? new ResourceLockedError(error.message, { cause: error }) : error
    this.emit('error', cause)
    const message = 'The operation was unable to achieve a quorum during its retry window.'
    return new ExecutionError(message, [], { cause })
  }
}

/** Resources that are locked until `expiration`. A program may construct one, for example in another process. */
export class Lock {
  readonly #grant: Grant | undefined

  /**
   * @param value the value of each key of the lock in Redis. On the servers of a quorum, its third and fourth parts may
   * differ.
   * @param attempts empty for a lock of `acquire`, which queues.
   * @param expiration milliseconds of the wall clock; 0 once the lock was released, extended or lost.
   * @param grant only for a lock of `acquire`.
   */
  constructor(
    readonly redlock: Redlock,
    readonly resources: string[],
    readonly value: string,
    readonly attempts: readonly Promise<ExecutionStats>[],
    public expiration: number,
    grant?: Grant,
  ) {
    this.#grant = grant
  }

  /**
   * Parts that redlock lacks: the fencing token, the signal of a loss, `assertHeld()`.
   * @throws InvalidArgumentError for a lock that the program has constructed
   */
  get grant(): Grant {
    if (!this.#grant) throw new InvalidArgumentError('a lock has a grant only if acquire returned it')
    return this.#grant
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

function changed(resources: readonly string[]): Error {
  return new ResourceLockedError(`the lock of ${resources.join(', ')} has ended or changed hands`)
}

function lossOf(grant: Grant): Promise<undefined> {
  const { signal } = grant
  return new Promise(resolve => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => {
      resolve(undefined)
    })
  })
}

function checkDuration(duration: number): void {
  if (!Number.isInteger(duration)) throw new Error('Duration must be an integer value in milliseconds.')
}
