import type { LockEnd } from '../history.js'

/** A lock that is held. */
export interface HeldLock {
  /** Absent if the library has no tokens. */
  readonly token?: bigint
  /** Whether the lock is still held, according to the library. */
  isHeld(): boolean
}

/** The locks of one client. */
export interface Locks {
  /**
   * Waits for the lock of a key, calls `task`, and releases the lock.
   * @param ownKey is locked together with `key`. Requests of one client for `key` alone share one request in the queue;
   *   a request with its own key has its own place. Libraries that lock one key at a time ignore it.
   * @param label shows the request to others.
   * @param leaving is called after the task, before the release.
   */
  use(
    key: string,
    ownKey: string | undefined,
    label: string,
    task: (held: HeldLock) => Promise<void>,
    leaving: () => void,
  ): Promise<LockEnd>
  /**
   * Returns the labels of the requests in the queue of a key, or none while the engine is unreachable. Absent if the
   * library does not show its queue.
   */
  waiters?(key: string): Promise<readonly string[]>
}

/** Maximum time to wait for a lock, in leases. */
export const PATIENCE = 5
