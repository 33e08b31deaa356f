import { isOwner, type CpSubsystem } from './cp-subsystem.js'
import { unlocked, type KeyLock, type KeyLocks } from './key-locks.js'
import type { Package } from './link.js'

/** How long the loss of one may go unnoticed while its grant is passed on: milliseconds. */
const UNSEEN = 1000

/** FencedLocks: they know no lease, and end with the CP session of their client. */
export class FencedLocks implements KeyLocks {
  readonly attempt = 250
  /** Nothing else would end what is granted to a client that has left. */
  readonly longestWait = 1000
  /** To let others in takes two rounds of consensus. */
  readonly longestTurns = 100
  readonly #cp: () => Promise<CpSubsystem>
  readonly #package: Package
  /** What is being given back: calls reach the group over any member, so in any order. */
  readonly #ending = new Map<string, Promise<unknown>>()

  constructor(cp: () => Promise<CpSubsystem>, hazelcast: Package) {
    this.#cp = cp
    this.#package = hazelcast
  }

  reached(): Promise<unknown> {
    return this.#cp()
  }

  async tryLock(key: string, wait: number): Promise<KeyLock | undefined> {
    const [cp] = await Promise.all([this.#cp(), this.#ending.get(key)])
    const lock = await cp.lock(key)
    const fence = await lock.tryLock(wait)
    if (fence === undefined) return undefined
    return {
      // Nobody keeps the session of a client that was replaced.
      renew: async () => (await this.#cp()) === cp && isOwner(lock, fence),
      unlock: () => this.#end(key, lock.unlock(fence)),
    }
  }

  certainLife(lease: number): number {
    return lease + UNSEEN
  }

  #end(key: string, unlocking: Promise<void>): Promise<boolean> {
    const ended = unlocking.catch(() => undefined)
    this.#ending.set(key, ended)
    void ended.then(() => {
      if (this.#ending.get(key) === ended) this.#ending.delete(key)
    })
    const { IllegalMonitorStateError } = this.#package
    return unlocked(unlocking, error => error instanceof IllegalMonitorStateError)
  }
}
