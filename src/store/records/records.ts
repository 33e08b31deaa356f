/** A record as a store of the caller's has it. */
export interface FoundRecord<Version = unknown> {
  readonly text: string
  /** What `compareAndSet` takes to write over just this record. */
  readonly version: Version
}

/**
 * A key-value store of the caller that values can be kept in. It reads a record with a version, and writes a record
 * only over the version that was read. `checkRecords` checks whether a store meets these requirements.
 *
 * Both methods see all that any client wrote before they were called. A rejection is a failure: nothing was read; or
 * the record may have been written, now or later.
 */
export interface Records<Version = unknown> {
  /** The record of a key, or undefined when there is none. */
  get(key: string): Promise<FoundRecord<Version> | undefined>
  /**
   * Writes a record if the key still has this version, in one step; undefined stands for a key without one.
   * A version may come again only with the very same text.
   * @param keep how long the record must be kept unless it is overwritten: milliseconds, undefined for forever. After
   * that it is worth nothing, and the store may drop it.
   * @returns the version of what was written; undefined when another one was found and nothing was written.
   */
  compareAndSet(
    key: string,
    version: Version | undefined,
    text: string,
    keep: number | undefined,
  ): Promise<Version | undefined>
}
