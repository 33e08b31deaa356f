import type { Session } from './session.js'
import { claimSet } from './claims.js'
import type { WriteGrant } from './grant.js'
import { ClaimSetLock, type Lock } from './lock.js'

/** Admits many readers or one writer. A waiting writer blocks later readers, so it doesn't starve. */
export interface ReadWriteLock {
  /** Shared with other readers. Don't fence by its tokens: concurrent readers have no order. */
  readonly read: Lock
  /** Exclusive. A write grant can be downgraded to a read grant. */
  readonly write: Lock<WriteGrant>
}

export function readWriteLock(session: Session, key: string): ReadWriteLock {
  return {
    read: new ClaimSetLock(session, claimSet([{ key, mode: 'shared' }]), 'read lock'),
    write: new ClaimSetLock(session, claimSet([{ key, mode: 'exclusive' }]), 'write lock'),
  }
}
