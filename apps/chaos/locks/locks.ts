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
   * @param ownKey is locked together with `key`. Requests of one client for `key` alone wait behind one request of the
   *   client; one with a key of its own waits for itself. A library that locks one key at a time leaves it out.
   * @param label names the request to others.
   * @param leaving is called when the task is over, before the lock is given back.
   */
  use(
    key: string,
    ownKey: string | undefined,
    label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd>
  /**
   * The labels of the requests in the queue of a key; none while the engine is unreachable. Absent where the library
   * shows no queue.
   */
  waiters?(key: string): Promise<readonly string[]>
}

/** So many leases are waited for a lock. */
export const PATIENCE = 5
