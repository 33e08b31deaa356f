import { textOfMark, type TableRecord } from './table-record.js'
import { stampOf } from './value-entry.js'

/** Maximum number of entries. */
const MAX_ENTRIES = 1024
/** Maximum length of an entry, in characters. */
const MAX_LENGTH = 4096

/**
 * A cache of the entries of store keys, as they will be when all pending changes of the newest record are written back.
 * Every commit is in a record, so the cache is valid as long as no record is missed.
 */
export class KnownEntries {
  readonly #entries = new Map<string, string | undefined>()
  /** The mark of the record that they belong to; undefined for a record that was never changed. */
  #at: string | undefined
  #version = 0
  /** Changes whenever entries are removed. Entries that were read before that must not be added. */
  epoch = 0

  /**
   * Applies a newer record, or the record of a cluster that has lost the last one.
   * @returns whether no record was missed in between
   */
  follow(record: TableRecord): boolean {
    const last = record.latest.at(-1)
    const mark = last && textOfMark(last)
    if (mark !== undefined && mark === this.#at) return true
    const isNext = record.follows !== undefined && textOfMark(record.follows) === this.#at
    if (!isNext) this.#clear()
    else
      for (const [key, text] of Object.entries(record.pending))
        if (stampOf(text) > this.#version) this.#set(key, text)
    this.#at = mark
    this.#version = record.version
    return isNext
  }

  /** Whether the entry of the key is known. If so, `get` returns it, or undefined if there is none. */
  has(key: string): boolean {
    return this.#entries.has(key)
  }

  get(key: string): string | undefined {
    return this.#entries.get(key)
  }

  /**
   * Adds entries that were read.
   * @param epoch the `epoch` at a time when they belonged to the newest known record.
   */
  add(read: ReadonlyMap<string, string | undefined>, epoch: number): void {
    // A cached entry may be newer.
    for (const [key, text] of read) if (epoch === this.epoch && !this.#entries.has(key)) this.#set(key, text)
  }

  #set(key: string, text: string | undefined): void {
    if (text !== undefined && text.length > MAX_LENGTH) {
      this.#entries.delete(key)
      this.epoch++
      return
    }
    if (this.#entries.size >= MAX_ENTRIES && !this.#entries.has(key)) this.#clear()
    this.#entries.set(key, text)
  }

  #clear(): void {
    this.#entries.clear()
    this.epoch++
  }
}
