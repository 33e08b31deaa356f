import type { Session } from './session.js'
import { InvalidArgumentError, shown } from '../base/errors.js'
import { claimSet } from './claims.js'
import { ClaimSetLock, type Lock } from './lock.js'

/** Mutual exclusion on one key, or on several that are granted together or not at all. */
export type Mutex = Lock

export function mutex(session: Session, keys: readonly string[]): Mutex {
  for (const key of keys as readonly unknown[]) {
    if (Array.isArray(key))
      throw new InvalidArgumentError(
        `the keys of a mutex are its arguments, as in mutex('a', 'b'), not ${shown(key)}`,
      )
    if (typeof key === 'object')
      throw new InvalidArgumentError(
        `key must be a string, not ${shown(key)}: acquire, tryAcquire and run take options`,
      )
  }
  return new ClaimSetLock(session, claimSet(keys.map(key => ({ key, mode: 'exclusive' }))), 'mutex')
}
