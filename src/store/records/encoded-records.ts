import { UnavailableError } from '../../base/errors.js'
import { BLANK, keptFor, type KeyRecord } from './key-record.js'
import { parseRecord, recordText } from './record-text.js'
import type { Records } from './records.js'

/** A record, with its version in the store. */
export interface Sighting {
  readonly record: KeyRecord
  /** Undefined if the store has no record. */
  readonly version: unknown
}

export type Swap =
  | { readonly state: 'written'; readonly now: Sighting }
  | { readonly state: 'refused' }
  /** No reply: the record may have been written, or may still be written. */
  | { readonly state: 'unknown'; readonly cause: unknown }

/** The records of a caller's store, decoded when they are read and encoded when they are written. */
export class EncodedRecords {
  readonly #records: Records
  readonly now: () => number

  /** @param now the wall clock, in milliseconds. */
  constructor(records: Records, now: () => number) {
    this.#records = records
    this.now = now
  }

  async find(key: string): Promise<Sighting> {
    let found
    try {
      found = await this.#records.get(key)
    } catch (cause) {
      throw new UnavailableError(`can't read the record of ${key}: ${messageOf(cause)}`, { key, cause })
    }
    return found
      ? { record: parseRecord(key, found.text), version: found.version }
      : { record: BLANK, version: undefined }
  }

  /** Writes `record` if the key has not changed since it was read. Never throws. */
  async swap(key: string, seen: Sighting, record: KeyRecord): Promise<Swap> {
    const text = recordText(record)
    const keep = keptFor(record, this.now())
    try {
      const version = await this.#records.compareAndSet(key, seen.version, text, keep)
      return version === undefined ? { state: 'refused' } : { state: 'written', now: { record, version } }
    } catch (cause) {
      return { state: 'unknown', cause }
    }
  }
}

export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
