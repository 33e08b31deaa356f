import { textOfMark, type TableRecord } from './table-record.js'
import { stampOf } from './value-entry.js'

/** At most so many entries are kept. */
const MAX_ENTRIES = 1024
/** Longer ones are not kept: characters. */
const MAX_VALUE_LENGTH = 4096

/**
 * Entries of store keys, as they will be when all that the newest record has pending is carried over. They need not
 * be read again. The record tells each commit, so they stay right as long as no record is missed.
 */
export class KnownEntries {
  readonly #entries = new Map<string, string | undefined>()
  /** The mark of the record that they belong to; undefined for a record that was never changed. */
  #at: string | undefined
  #version = 0
  /** Changes whenever entries are forgotten. Entries that were read before that must not be added. */
  epoch = 0

  /**
   * Goes on to a newer record, or to the record of a cluster that lost the last one.
   * @returns whether no record was missed between the two
   */
  follow(record: TableRecord): boolean {
    const last = record.latest.at(-1)
    const mark = last && textOfMark(last)
    if (mark !== undefined && mark === this.#at) return true
    const isNext = record.follows !== undefined && textOfMark(record.follows) === this.#at
    if (!isNext) this.#forget()
    else
      for (const [key, text] of Object.entries(record.pending))
        if (stampOf(text) > this.#version) this.#keep(key, text)
    this.#at = mark
    this.#version = record.version
    return isNext
  }

  /** Whether the entry of the key is known; then `get` has it, undefined when there is none. */
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
    // An entry that is known already may be newer.
    for (const [key, text] of read) if (epoch === this.epoch && !this.#entries.has(key)) this.#keep(key, text)
  }

  #keep(key: string, text: string | undefined): void {
    if (text !== undefined && text.length > MAX_VALUE_LENGTH) {
      this.#entries.delete(key)
      this.epoch++
      return
    }
    if (this.#entries.size >= MAX_ENTRIES && !this.#entries.has(key)) this.#forget()
    this.#entries.set(key, text)
  }

  #forget(): void {
    this.#entries.clear()
    this.epoch++
  }
}
