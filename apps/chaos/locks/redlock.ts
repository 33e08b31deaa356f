import { Redis } from 'ioredis'
import Redlock, { ExecutionError, ResourceLockedError } from 'redlock'
import type { LockEnd } from '../history.js'
import { PATIENCE, type HeldLock, type Locks } from './locks.js'

const RETRY = 20

/** redlock on one server, with `using`, which extends the lock, as its documentation recommends. */
export class RedlockLocks implements Locks {
  readonly #redlock: Redlock
  readonly #lease: number

  constructor(url: string, lease: number) {
    const client = new Redis(url)
    // The client connects again by itself.
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
