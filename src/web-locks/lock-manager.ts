import { InvalidArgumentError, type Box, type Grant, type Party } from '../index.js'
import { onAbort } from '../base/abort-task.js'
import { shown } from '../base/errors.js'
import {
  checkSupported,
  converted,
  keyOf,
  nameOf,
  notSupported,
  PREFIX,
  type LockMode,
  type LockOptions,
  type LockRequest,
} from './lock-request.js'

/** A lock that is held until the promise of the callback settles. */
export interface Lock {
  readonly name: string
  readonly mode: LockMode
  /**
   * Not in the standard: aborts with a LostError when the lock is lost before the callback ends, because another
   * request has stolen it, its lease has expired or the box was closed. Then the promise of the request rejects, too.
   */
  readonly signal: AbortSignal
}

/** A lock that is held, or a request for one. */
export interface LockInfo {
  readonly name: string
  readonly mode: LockMode
  /** The session of its box. */
  readonly clientId: string
}

/** All locks and requests at one time, of all boxes on the engine. */
export interface LockManagerSnapshot {
  readonly held: LockInfo[]
  /** Requests for the same name are in the order in which they will be granted. */
  readonly pending: LockInfo[]
}

/**
 * The `LockManager` of the Web Locks standard (https://w3c.github.io/web-locks/, as of 2026) over the engine of a box.
 * The comments name its steps. All boxes on the engine share the locks: its queues are the queues of the standard, and
 * an engine executes the requests of a box in that order, as the lock task queue does.
 */
export class LockManager {
  readonly #box: Box

  /** @internal */
  constructor(box: Box) {
    this.#box = box
  }

  /**
   * Calls the callback when the lock is granted, holds the lock until its promise settles, and settles as that promise.
   * @throws TypeError for invalid arguments; DOMException: NotSupportedError for anything that the standard, the engine
   * or the length of a key does not admit, AbortError when the lock was lost before the callback ended, with the
   * LostError as its `cause`; the reason of the signal; the error of the callback; ClosedError, UnavailableError,
   * IndeterminateError
   */
  request<T>(name: string, callback: (lock: Lock) => T): Promise<Awaited<T>>
  request<T>(
    name: string,
    options: LockOptions & { ifAvailable?: false | undefined },
    callback: (lock: Lock) => T,
  ): Promise<Awaited<T>>
  request<T>(name: string, options: LockOptions, callback: (lock: Lock | null) => T): Promise<Awaited<T>>
  request(...given: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const request = converted(given)
      checkSupported(request)
      this.#request(request, resolve, reject)
    })
  }

  /**
   * Returns the held and the requested locks of all boxes on the engine.
   * @throws UnavailableError, ClosedError, IndeterminateError
   */
  async query(): Promise<LockManagerSnapshot> {
    const held: LockInfo[] = []
    const pending: LockInfo[] = []
    for await (const { key, holders, waiters } of this.#box.inspect(PREFIX)) {
      const name = nameOf(key)
      const all = [...holders, ...waiters].map(party => infoOf(name, party))
      // A waiter that nothing blocks counts as held: its grant is about to arrive.
      const waits = all.findIndex(
        ({ mode }, index) =>
          index >= holders.length &&
          (mode === 'exclusive' ? index > 0 : all.slice(0, index).some(other => other.mode === 'exclusive')),
      )
      const end = waits === -1 ? all.length : waits
      held.push(...all.slice(0, end))
      pending.push(...all.slice(end))
    }
    return { held, pending }
  }

  /** "Request a lock". `resolve` and `reject` settle the promise that the standard calls the released promise. */
  #request(request: LockRequest, resolve: (value: unknown) => void, reject: (reason: unknown) => void): void {
    const { name, mode, ifAvailable, steal, signal, callback } = request
    const lock = this.#box.lock({ key: keyOf(name), mode })
    // Step 2, "signal to abort the request": the engine removes the request from its queue.
    const forget = signal && onAbort(signal, () => reject(signal.reason))
    // Step 3: the engine steals the lock, enters the request in the queue, and processes the queue.
    const asked = ifAvailable
      ? lock.tryAcquire({ ownRequest: true })
      : lock.acquire({ ownRequest: true, steal, signal })
    const granted = (grant: Grant | undefined): void => {
      // Step 3.5.1: the callback runs without the lock.
      if (!grant) return resolve(invoke(callback, null))
      // "Process the lock request queue": the grant came after the signal had aborted.
      if (signal?.aborted) return void grant[Symbol.asyncDispose]()
      forget?.()
      const lost = (): void => reject(lostError(name, grant.signal.reason))
      if (grant.signal.aborted) lost()
      else onAbort(grant.signal, lost)
      const waiting = invoke(callback, { name, mode, signal: grant.signal })
      // "When the waiting promise settles": a release that finds the lock lost has rejected the promise before.
      const settled = (): void => void grant[Symbol.asyncDispose]().then(() => resolve(waiting))
      waiting.then(settled, settled)
    }
    asked.then(granted, (error: unknown) => {
      forget?.()
      // The engine has rejected a request that the standard permits.
      reject(error instanceof InvalidArgumentError ? notSupported(error.message) : error)
    })
  }
}

/** The lock manager over a box. @throws InvalidArgumentError */
export function lockManager(box: Box): LockManager {
  if (typeof (box as Partial<Box> | undefined)?.lock !== 'function')
    throw new InvalidArgumentError(`lockManager needs a box, awaited from open(), not ${shown(box)}`)
  return new LockManager(box)
}

/** Calls the callback as Web IDL specifies: an exception rejects the promise. */
function invoke(callback: LockRequest['callback'], lock: Lock | null): Promise<unknown> {
  return new Promise(resolve => resolve(callback(lock)))
}

/** Returns the error of the standard for a stolen lock. The standard knows no other loss of a lock. */
function lostError(name: string, cause: unknown): DOMException {
  return new DOMException(`the lock ${shown(name)} was lost`, { name: 'AbortError', cause })
}

function infoOf(name: string, { claim, session }: Party): LockInfo {
  return { name, mode: claim.mode === 'shared' ? 'shared' : 'exclusive', clientId: session }
}
