import { LostError, SignalboxError, type Box, type Grant } from 'signalbox'
import type { LockEnd } from '../history.js'
import { PATIENCE, type HeldLock, type Locks } from './locks.js'

/** Errors after which nothing is held, and those after which a grant may be. */
const REFUSALS = new Set(['UNAVAILABLE', 'TIMED_OUT', 'LOST', 'INDETERMINATE'])

/** Mutexes of Signalbox. */
export class SignalboxLocks implements Locks {
  readonly #box: Box
  readonly #lease: number

  constructor(box: Box, lease: number) {
    this.#box = box
    this.#lease = lease
  }

  async use(
    key: string,
    label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd> {
    let grant: Grant
    try {
      grant = await this.#box.mutex(key).acquire({ lease: this.#lease, wait: PATIENCE * this.#lease, label })
    } catch (error) {
      if (error instanceof SignalboxError && REFUSALS.has(error.code)) return 'refused'
      throw error
    }
    await task({ token: grant.token, isHeld: () => isHeld(grant) })
    leaving()
    try {
      await grant.release()
      return 'released'
    } catch (error) {
      if (error instanceof LostError) return 'lost'
      if (error instanceof SignalboxError && REFUSALS.has(error.code)) return 'unknown'
      throw error
    }
  }

  async isQueued(key: string, label: string): Promise<boolean> {
    for await (const report of this.#box.inspect(key)) {
      if (report.key === key && report.waiters.some(waiter => waiter.label === label)) return true
    }
    return false
  }
}

function isHeld(grant: Grant): boolean {
  try {
    grant.assertHeld()
    return true
  } catch (error) {
    if (error instanceof LostError) return false
    throw error
  }
}
