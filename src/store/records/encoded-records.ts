import { UnavailableError } from '../../errors.js'
import { BLANK, keptFor, type KeyRecord } from './key-record.js'
import { parseRecord, recordText } from './record-text.js'
import type { Records } from './records.js'

/** A record with what the store knows it by. */
export interface Sighting {
  readonly record: KeyRecord
  /** Undefined when the store has nothing. */
  readonly version: unknown
}

/** The outcome of a compare-and-set. */
export type Swap =
  | { readonly state: 'written'; readonly now: Sighting }
  | { readonly state: 'refused' }
  /** No answer: it may have been written, or be written yet. */
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

  /** @throws UnavailableError */
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

  /** Writes `record` if the key still is as it was seen. Never throws. */
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

/** What a failure says. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
