/** Who holds or awaits a lock. */
export interface LockUser {
  /** The label of the box or the process. */
  readonly who: string
  /** The train that it is for, in a run that is slowed down for viewers. */
  readonly train: string | undefined
  /** Milliseconds since its request. */
  readonly age: number
}

/** A location whose lock is in use. */
export interface LockInUse {
  readonly location: string
  readonly holders: readonly LockUser[]
  /** In the order of the queue. */
  readonly waiters: readonly LockUser[]
}
