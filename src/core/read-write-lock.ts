import type { Session } from './session.js'
import { claimSet } from './claims.js'
import type { WriteGrant } from './grant.js'
import { ClaimLock, type Lock } from './lock.js'

/** Readers together, or one writer alone. A writer that waits keeps later readers out, so it doesn't starve. */
export interface ReadWriteLock {
  /** Shared with other readers. Its tokens do not fence: readers have no order among themselves. */
  readonly read: Lock
  /** Alone. A write grant can be downgraded to a read grant. */
  readonly write: Lock<WriteGrant>
}

/** @throws InvalidArgumentError when the key is unfit. */
export function readWriteLock(session: Session, key: string): ReadWriteLock {
  return {
    read: new ClaimLock(session, claimSet([{ key, mode: 'shared' }]), 'read lock'),
    write: new ClaimLock(session, claimSet([{ key, mode: 'exclusive' }]), 'write lock'),
  }
}
