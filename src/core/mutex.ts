import type { Session } from './session.js'
import { claimSet } from './claims.js'
import { ClaimSetLock, type Lock } from './lock.js'

/** Mutual exclusion on one key, or on several that are granted together or not at all. */
export type Mutex = Lock

/** @throws InvalidArgumentError when there is no key or one is invalid. */
export function mutex(session: Session, keys: readonly string[]): Mutex {
  return new ClaimSetLock(session, claimSet(keys.map(key => ({ key, mode: 'exclusive' }))), 'mutex')
}
