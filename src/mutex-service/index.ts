import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { BusyError, ClosedError, InvalidArgumentError, open, TimedOutError, type Box } from '../index.js'
import { Mutex } from './mutex.js'
import { MutexTimeoutError } from './mutex-timeout-error.js'

export { Mutex } from './mutex.js'
export { MutexTimeoutError } from './mutex-timeout-error.js'

/** How a service gives mutexes. */
export interface MutexServiceOptions {
  /** Where they live: any URL that `open` takes. */
  readonly url: string
  /** How long a mutex outlives the silence of who has it: 0.02 seconds to a day. It is renewed before, see `renew`. */
  readonly leaseSeconds: number
  /** How long to wait for a mutex of another holder: milliseconds; Infinity for as long as it takes. */
  readonly waitMillis: number
  /** Whether leases are renewed until the release. Default: true. */
  readonly renew?: boolean
  /** Receives a line for every lock that is created and deleted. */
  readonly log?: (line: string) => void
}

/**
 * Mutexes by name, in the manner of operating systems: wait for one object, use it, dispose of it. The connection is
 * opened by the first wait.
 * @throws InvalidArgumentError that names the option that is unfit
 */
export function mutexService(options: MutexServiceOptions): MutexService {
  return new MutexService(checked(options))
}

/** See {@link mutexService}. */
export class MutexService implements AsyncDisposable {
  readonly #options: MutexServiceOptions
  #box: Promise<Box> | undefined
  #closed = false

  constructor(options: MutexServiceOptions) {
    this.#options = options
  }

  /**
   * The mutex of this name as soon as it is this caller's turn, first come, first served.
   * @throws MutexTimeoutError when the wait is over; InvalidArgumentError, UnavailableError, IndeterminateError,
   * ClosedError
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
      return new Mutex({ box, grant, lockId, log })
    } catch (error) {
      if (!(error instanceof TimedOutError || error instanceof BusyError)) throw error
      throw new MutexTimeoutError(key, waitMillis, { engine: error.engine, cause: error })
    }
  }

  /** Ends all waits with a ClosedError and gives back what is held. */
  async close(): Promise<void> {
    this.#closed = true
    const box = await this.#box?.catch(() => undefined)
    await box?.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #opened(): Promise<Box> {
    if (this.#closed) throw new ClosedError('the mutex service was closed')
    if (!this.#box) {
      const opening = (this.#box = open(this.#options.url))
      // The next waiter tries again.
      opening.catch(() => (this.#box = undefined))
    }
    return this.#box
  }
}

function checked(options: MutexServiceOptions): MutexServiceOptions {
  if (typeof options !== 'object' || options === null)
    throw new InvalidArgumentError('mutexService needs { url, leaseSeconds, waitMillis }')
  const { url, leaseSeconds, waitMillis, renew, log } = options
  if (typeof url !== 'string') throw unfit('url', 'a string such as redis://localhost:6379', url)
  if (typeof leaseSeconds !== 'number' || !(leaseSeconds >= 0.02 && leaseSeconds <= 86_400))
    throw unfit('leaseSeconds', 'a number from 0.02 to 86400', leaseSeconds)
  if (typeof waitMillis !== 'number' || !(waitMillis >= 0))
    throw unfit('waitMillis', 'a number from 0, or Infinity', waitMillis)
  if (renew !== undefined && typeof renew !== 'boolean') throw unfit('renew', 'true or false', renew)
  if (log !== undefined && typeof log !== 'function') throw unfit('log', 'a function', log)
  return options
}

function unfit(option: string, expected: string, got: unknown): InvalidArgumentError {
  return new InvalidArgumentError(`${option} must be ${expected}, not ${inspect(got, { depth: 0 })}`)
}
