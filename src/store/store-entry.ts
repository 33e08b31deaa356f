/** A value with its version. */
export interface StoreEntry<T = unknown> {
  readonly value: T
  /** The version of its last change. It is never used again, even after a deletion. */
  readonly version: number
}
