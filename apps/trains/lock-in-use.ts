/** A holder of a lock, or a waiter for one. */
export interface LockUser {
  /** The worker, otherwise the label of the box, otherwise its process. */
  readonly who: string
  /** The train that needs the lock. Known only in a run that is slowed down for viewers. */
  readonly train: string | undefined
  /** Time since the request for the lock, in milliseconds. */
  readonly age: number
}

export interface LockInUse {
  readonly location: string
  readonly holders: readonly LockUser[]
  /** In the order of the queue. */
  readonly waiters: readonly LockUser[]
}
