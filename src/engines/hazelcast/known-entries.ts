import { textOfMark, type TableRecord } from './table-record.js'
import { stampOf } from './value-entry.js'

/** So many entries are kept. */
const MOST = 1024
/** Longer ones are not kept: characters. */
const LONGEST = 4096

/**
 * Entries of store keys as they are once all is carried over that the newest known record has pending, so that they need not
 * be read again. Every commit is told by the record that it made; so as long as no record is missed they stay right.
 */
export class KnownEntries {
  readonly #entries = new Map<string, string | undefined>()
  /** The mark of the record that they belong to; undefined for one that nobody has changed yet. */
  #at: string | undefined
  #version = 0
  /** Changes whenever any are forgotten: what was read before that must not be added. */
  epoch = 0

  /**
   * Goes on to a newer record, or to whatever a cluster has that lost the last one.
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
   * @param epoch what `epoch` was when the newest known record was one that they belong to.
   */
  add(read: ReadonlyMap<string, string | undefined>, epoch: number): void {
    // One that is there was followed further than what was read.
    for (const [key, text] of read) if (epoch === this.epoch && !this.#entries.has(key)) this.#keep(key, text)
  }

  #keep(key: string, text: string | undefined): void {
    if (text !== undefined && text.length > LONGEST) {
      this.#entries.delete(key)
      this.epoch++
      return
    }
    if (this.#entries.size >= MOST && !this.#entries.has(key)) this.#forget()
    this.#entries.set(key, text)
  }

  #forget(): void {
    this.#entries.clear()
    this.epoch++
  }
}
