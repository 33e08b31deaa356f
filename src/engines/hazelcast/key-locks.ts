/** A lock of a key that somebody here has. */
export interface KeyLock {
  /** Sees to it that it lives for a lease from now on. False: it was lost. @throws what the client throws */
  renew(lease: number): Promise<boolean>
  /** False: it was lost. @throws what the client throws; then it ends when a lock of its kind ends by itself */
  unlock(): Promise<boolean>
}

/** The locks of the cluster that programs in other languages use, too: those of an IMap. */
export interface KeyLocks {
  /** How long an attempt waits for what is just being given back: milliseconds. */
  readonly attempt: number
  /** How long a call that waits for another program is parked on a member at the most: milliseconds. */
  readonly longestWait: number
  /** How long one is kept from user to user here until other programs are let in: milliseconds. */
  readonly longestTurns: number
  /** Settles when the cluster is in reach. @throws UnavailableError when it is not in time; ClosedError */
  reached(): Promise<unknown>
  /** Undefined: another program has it. @param wait how long that may be waited for: milliseconds. @throws what the client throws */
  tryLock(key: string, wait: number, lease: number): Promise<KeyLock | undefined>
  /** How long a lock need not be renewed after it was asked for: milliseconds. */
  certainLife(lease: number): number
}

/** The answer to an unlock, as {@link KeyLock.unlock} gives it. @param isLoss whether an error says that it was lost */
export async function unlocked(
  unlocking: Promise<void>,
  isLoss: (error: unknown) => boolean,
): Promise<boolean> {
  try {
    await unlocking
    return true
  } catch (error) {
    if (isLoss(error)) return false
    throw error
  }
}
