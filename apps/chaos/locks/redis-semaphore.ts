import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'
import type { LockEnd } from '../history.js'
import { PATIENCE, type HeldLock, type Locks } from './locks.js'

/** redis-semaphore's mutex, which renews its lock by itself. */
export class RedisSemaphoreLocks implements Locks {
  readonly #client: Redis
  readonly #lease: number

  constructor(url: string, lease: number) {
    this.#client = new Redis(url)
    // The client connects again by itself.
    this.#client.on('error', () => undefined)
    this.#lease = lease
  }

  async use(
    key: string,
    _ownKey: string | undefined,
    _label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd> {
    const mutex = new Mutex(this.#client, key, {
      lockTimeout: this.#lease,
      acquireTimeout: PATIENCE * this.#lease,
      // Without this handler, a lost lock ends the process.
      onLockLost: () => undefined,
    })
    try {
      await mutex.acquire()
    } catch {
      return 'refused'
    }
    await task({ isHeld: () => mutex.isAcquired })
    leaving()
    const held = mutex.isAcquired
    try {
      await mutex.release()
      return held ? 'released' : 'lost'
    } catch {
      return 'unknown'
    }
  }
}
