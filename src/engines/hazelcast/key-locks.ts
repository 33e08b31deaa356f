/** A lock of a key that somebody here has. */
export interface KeyLock {
  /** Sees to it that it lives for a lease from now on. False: it was lost. @throws what the client throws */
  renew(lease: number): Promise<boolean>
  /** @throws what the client throws; then it was lost, or ends when a lock of its kind ends by itself */
  unlock(): Promise<void>
}

/** The locks of the cluster that programs in other languages use, too: those of an IMap, or FencedLocks. */
export interface KeyLocks {
  /** How long an attempt waits for what is just being given back: milliseconds. */
  readonly attempt: number
  /** Settles when the cluster is in reach. @throws UnavailableError when it is not in time; ClosedError */
  reached(): Promise<unknown>
  /** Undefined: another program has it. @param wait how long that may be waited for: milliseconds. @throws what the client throws */
  tryLock(key: string, wait: number, lease: number): Promise<KeyLock | undefined>
  /** How long a lock need not be renewed after it was asked for: milliseconds. */
  certainLife(lease: number): number
}
