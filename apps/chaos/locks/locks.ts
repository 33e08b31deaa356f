import type { LockEnd } from '../history.js'

/** A lock while it is held. */
export interface HeldLock {
  /** Absent where the library gives none. */
  readonly token?: bigint
  /** Whether the library says that it is held still. */
  isHeld(): boolean
}

/** The locks of one client. */
export interface Locks {
  /**
   * Waits for the lock of a key, calls `task`, and gives the lock back.
   * @param label names the request to others.
   * @param leaving is called when the task is over, before the lock is given back.
   */
  use(
    key: string,
    label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd>
  /** Whether a request is seen in the queue, by who can look. */
  isQueued?(key: string, label: string): Promise<boolean>
}

/** So many leases are waited for a lock. */
export const PATIENCE = 5
