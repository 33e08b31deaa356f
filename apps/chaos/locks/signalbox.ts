import { LostError, SignalboxError, type Box, type Grant } from 'signalbox'
import type { LockEnd } from '../history.js'
import { PATIENCE, type HeldLock, type Locks } from './locks.js'

/** Errors of an unreachable engine. */
const OUTAGES = new Set(['UNAVAILABLE', 'INDETERMINATE'])
/** Errors of an acquire that ends without a grant. After a release, they mean that its outcome is unknown. */
const REFUSALS = new Set([...OUTAGES, 'TIMED_OUT', 'LOST'])

/** Signalbox's mutexes. */
export class SignalboxLocks implements Locks {
  readonly #box: Box
  readonly #lease: number

  constructor(box: Box, lease: number) {
    this.#box = box
    this.#lease = lease
  }

  async use(
    key: string,
    ownKey: string | undefined,
    label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd> {
    const mutex = ownKey === undefined ? this.#box.mutex(key) : this.#box.mutex(key, ownKey)
    let grant: Grant
    try {
      grant = await mutex.acquire({ lease: this.#lease, wait: PATIENCE * this.#lease, label })
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

  async waiters(key: string): Promise<readonly string[]> {
    const labels: string[] = []
    try {
      for await (const { waiters } of this.#box.inspect(key, { exact: true }))
        labels.push(...waiters.flatMap(({ label }) => label ?? []))
    } catch (error) {
      if (!(error instanceof SignalboxError) || !OUTAGES.has(error.code)) throw error
    }
    return labels
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
