import { randomUUID } from 'node:crypto'
import {
  BusyError,
  ClosedError,
  LostError,
  open,
  TimedOutError,
  type Box,
  type ErrorContext,
  type Grant,
} from 'signalbox'

export interface MutexServiceOptions {
  /** Any URL that `open` takes. */
  readonly url: string
  /** Time that a mutex stays locked after its holder stops responding, in seconds. */
  readonly leaseSeconds: number
  /** Maximum wait for a mutex, in milliseconds; Infinity for no limit. */
  readonly waitMillis: number
  /** Whether leases are renewed until the release. Default: true. */
  readonly renew?: boolean
  /** Called with a line for each lock that is created or deleted. */
  readonly log?: (line: string) => void
}

/**
 * Mutexes in the style of operating systems: a task waits for a mutex by name, and disposes of it. The first wait opens
 * the connection.
 */
export class MutexService implements AsyncDisposable {
  readonly #options: MutexServiceOptions
  #box: Promise<Box> | undefined
  #isClosed = false

  constructor(options: MutexServiceOptions) {
    this.#options = options
  }

  /**
   * Returns the mutex with this name when it is this caller's turn, first come, first served.
   * @throws MutexTimeoutError after `waitMillis`; ClosedError, UnavailableError, IndeterminateError
   */
  async waitForSingleObject(key: string): Promise<Mutex> {
    const { leaseSeconds, waitMillis, renew = true, log } = this.#options
    const box = await this.#opened()
    const lockId = randomUUID()
    try {
      const grant = await box
        .mutex(key)
        .acquire({ lease: leaseSeconds * 1000, wait: waitMillis, renew, label: lockId })
      log?.(`create key : lock_id=${lockId}`)
      return new Mutex(box, grant, lockId, log)
    } catch (error) {
      if (!(error instanceof TimedOutError || error instanceof BusyError)) throw error
      throw new MutexTimeoutError(key, waitMillis, { engine: error.engine, cause: error })
    }
  }

  /** Ends all waits with a ClosedError, and releases all mutexes. */
  async close(): Promise<void> {
    this.#isClosed = true
    const box = await this.#box?.catch(() => undefined)
    await box?.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #opened(): Promise<Box> {
    if (this.#isClosed) throw new ClosedError('the mutex service was closed')
    if (!this.#box) {
      const opening = (this.#box = open(this.#options.url))
      // The next wait opens the connection again.
      opening.catch(() => (this.#box = undefined))
    }
    return this.#box
  }
}

/** A mutex that its caller holds until it disposes of it or loses it. */
export class Mutex implements AsyncDisposable {
  /** A UUID. `signalbox ls` shows it as the label of the holder. */
  readonly lockId: string
  readonly #box: Box
  readonly #grant: Grant
  readonly #log: MutexServiceOptions['log']
  #isReleased = false

  constructor(box: Box, grant: Grant, lockId: string, log: MutexServiceOptions['log']) {
    this.lockId = lockId
    this.#box = box
    this.#grant = grant
    this.#log = log
  }

  get key(): string {
    return this.#grant.keys[0]!
  }

  /** The fencing token, greater than that of every earlier holder. */
  get token(): bigint {
    return this.#grant.token
  }

  /** Aborts when the mutex is lost, at the end of its lease at the latest. */
  get signal(): AbortSignal {
    return this.#grant.signal
  }

  /** Returns if the mutex is certainly held. @throws LostError otherwise. */
  assertHeld(): void {
    this.#grant.assertHeld()
  }

  /**
   * Releases the mutex if this caller still holds it. A second call does nothing.
   * @throws LostError if it was lost before, without affecting the next holder; UnavailableError, IndeterminateError
   */
  async release(): Promise<void> {
    if (this.#isReleased) return
    this.#isReleased = true
    try {
      await this.#grant.release()
    } catch (error) {
      if (this.#log && error instanceof LostError) this.#log(deleted(this.lockId, await this.#holder()))
      throw error
    }
    // The engine releases only the grant of this caller, so the deleted lock has this ID.
    this.#log?.(deleted(this.lockId, this.lockId))
  }

  /** Releases at the end of an `await using` block, and throws nothing. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined)
  }

  /** Returns the lock ID of the current holder, `none` or `unknown`. */
  async #holder(): Promise<string> {
    try {
      for await (const { holders } of this.#box.inspect(this.key, { exact: true }))
        if (holders.length > 0) return holders[0]!.label ?? 'unknown'
      return 'none'
    } catch {
      return 'unknown'
    }
  }
}

/** Thrown when a wait for a mutex times out. */
export class MutexTimeoutError extends TimedOutError {
  /** @param waitMillis time that the caller waited, in milliseconds */
  constructor(
    readonly mutex: string,
    waitMillis: number,
    context: ErrorContext,
  ) {
    super(`mutex ${mutex} was not free within ${waitMillis} ms`, { ...context, key: mutex })
  }
}

function deleted(expected: string, actual: string): string {
  return `delete key : lock_id expect=${expected} actual=${actual}`
}
