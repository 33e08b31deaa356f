/** A record of the caller's store. */
export interface FoundRecord<Version = unknown> {
  readonly text: string
  /** Identifies this state of the record for `compareAndSet`. */
  readonly version: Version
}

/**
 * The caller's key-value store, which keeps values. It reads a record with a version, and replaces a record only if it
 * still has that version. `checkRecords` checks whether a store meets these requirements.
 *
 * Both methods see all writes of any client that ended before the call. If `get` rejects, nothing was read. If
 * `compareAndSet` rejects, the record may have been written, or may be written later.
 */
export interface Records<Version = unknown> {
  /** Returns the record of a key, or undefined if there is none. */
  get(key: string): Promise<FoundRecord<Version> | undefined>
  /**
   * Writes a record in one step if the key has this version; undefined stands for a key without a record. A version may
   * be used again only for the same text.
   * @param keep minimum time to keep the record unless it is overwritten, in milliseconds; undefined for forever. After
   * that the store may drop it.
   * @returns the new version; undefined if the key has another version, and nothing was written
   */
  compareAndSet(
    key: string,
    version: Version | undefined,
    text: string,
    keep: number | undefined,
  ): Promise<Version | undefined>
}
