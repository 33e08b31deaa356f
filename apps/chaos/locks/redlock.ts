import { Redis } from 'ioredis'
import Redlock, { ExecutionError, ResourceLockedError } from 'redlock'
import type { LockEnd } from '../history.js'
import { PATIENCE, type HeldLock, type Locks } from './locks.js'

const RETRY = 20

/** redlock over one server, as its documentation says: `using`, which extends the lock. */
export class RedlockLocks implements Locks {
  readonly #redlock: Redlock
  readonly #lease: number

  constructor(url: string, lease: number) {
    const client = new Redis(url)
    // What can't be reached for a moment is tried again.
    client.on('error', () => undefined)
    this.#redlock = new Redlock([client], {
      retryCount: Math.ceil((PATIENCE * lease) / RETRY),
      retryDelay: RETRY,
      retryJitter: RETRY,
      automaticExtensionThreshold: lease / 2,
    })
    this.#redlock.on('error', () => undefined)
    this.#lease = lease
  }

  async use(
    key: string,
    _ownKey: string | undefined,
    _label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd> {
    let end: LockEnd = 'refused'
    try {
      await this.#redlock.using([key], this.#lease, async signal => {
        end = 'lost'
        await task({ isHeld: () => !signal.aborted })
        leaving()
      })
      return 'released'
    } catch (error) {
      if (error instanceof ExecutionError || error instanceof ResourceLockedError) return end
      throw error
    }
  }
}
