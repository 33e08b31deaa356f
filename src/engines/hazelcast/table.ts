import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered } from './call.js'
import { KnownEntries } from './known-entries.js'
import { Sightings } from './sightings.js'
import {
  decodeTable,
  emptyTable,
  encodeTable,
  TABLE_KEY,
  wasMade,
  type Mark,
  type TableRecord,
} from './table-record.js'

/** The record as it was found. */
export interface Found {
  /** Undefined when there is none yet. */
  readonly text: string | undefined
  readonly record: TableRecord
}

const RETRY_PAUSE = 100

/** It is not known whether a change was made. */
export class UnclearError extends Error {}

/** The table's record as it is known here: read, changed by compare-and-set, and heard of. */
export class Table {
  readonly sightings = new Sightings()
  readonly entries = new KnownEntries()
  readonly #by: string
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock
  readonly #changed: (record: TableRecord, isNext: boolean) => void
  #known: Found | undefined
  /** How many changes of ours were tried. */
  #count = 0
  /** News that came while a change of ours was on its way; undefined when none is. */
  #late: string[] | undefined

  /**
   * @param by tells our changes from those of others.
   * @param changed is told of a newer record that another box made, and whether it follows the last one that was known.
   */
  constructor(
    by: string,
    map: () => Promise<IMap<string, string>>,
    clock: Clock,
    changed: (record: TableRecord, isNext: boolean) => void,
  ) {
    this.#by = by
    this.#map = map
    this.#clock = clock
    this.#changed = changed
  }

  /** The newest record that is known here; undefined before one was read. */
  get known(): Found | undefined {
    return this.#known
  }

  /** A member told of this record; such news may be late. */
  heard(text: string): void {
    // It may be newer than our change, whose answer it has overtaken: what we ended ourselves would look lost.
    if (this.#late) return void this.#late.push(text)
    let record: TableRecord
    try {
      record = decodeTable(text)
    } catch {
      // Whoever reads it is told.
      return
    }
    const known = this.#known
    if (known && (known.text === undefined || record.turn > known.record.turn)) this.#adopt({ text, record })
  }

  /** Reads the record. @throws what the client throws */
  async read(): Promise<Found> {
    let found = await this.#get()
    // Either news came while this was on its way, or the cluster has lost what it had.
    if (this.#known?.text !== undefined && found.record.turn < this.#known.record.turn)
      found = await this.#get()
    if (this.#known === undefined || found.text !== this.#known.text) this.#adopt(found)
    return this.#known!
  }

  /**
   * Changes the record, if it is still as it was found, and gives the new one. Undefined: it is not.
   * @param change makes the new record, with a mark in it.
   * @param until when to give up: clock time.
   * @throws UnclearError when it is not known whether that happened
   */
  async change(found: Found, change: (mark: Mark) => TableRecord, until: number): Promise<Found | undefined> {
    const mark = { by: this.#by, count: ++this.#count }
    const record = change(mark)
    const text = encodeTable(record)
    const sentAt = this.#clock.now()
    this.#late = []
    try {
      const isMade = await this.#made(found, text, mark, until)
      if (!isMade) {
        // It tells who was faster, and record after record what they did.
        const late = this.#late
        this.#late = undefined
        for (const each of late) this.heard(each)
        return undefined
      }
      this.#known = { text, record }
      // The others see it later, and what is ours has to end for us first.
      this.sightings.see(record, sentAt)
      this.entries.follow(record)
      return this.#known
    } finally {
      const late = this.#late
      this.#late = undefined
      // After whoever waits for this has dealt with it.
      if (late && late.length > 0) setImmediate(() => late.forEach(each => this.heard(each)))
    }
  }

  async #made(found: Found, text: string, mark: Mark, until: number): Promise<boolean> {
    try {
      return await this.#replace(found.text, text)
    } catch (cause) {
      return this.#settle(found, text, mark, until, cause)
    }
  }

  /** Finds out what became of a change whose answer was lost, or tells nothing. Sending it again is harmless: it is the same change. */
  async #settle(found: Found, text: string, mark: Mark, until: number, cause: unknown): Promise<boolean> {
    while (this.#clock.now() < until) {
      try {
        const now = await this.#get()
        if (now.text !== found.text) {
          const isMade = wasMade(now.record, mark, found.record)
          if (isMade === undefined) break
          if (!isMade && now.text !== undefined) this.#late?.push(now.text)
          return isMade
        }
        if (await this.#replace(found.text, text)) return true
      } catch {
        await new Promise<void>(resolve => void this.#clock.after(RETRY_PAUSE, resolve, true))
      }
    }
    throw new UnclearError('the answer to a change was lost', { cause })
  }

  async #replace(before: string | undefined, after: string): Promise<boolean> {
    const map = await this.#map()
    if (before !== undefined) return answered(map.replaceIfSame(TABLE_KEY, before, after), this.#clock)
    return (await answered(map.putIfAbsent(TABLE_KEY, after), this.#clock)) === null
  }

  async #get(): Promise<Found> {
    const map = await this.#map()
    const text = await answered(map.get(TABLE_KEY), this.#clock)
    return text === null ? { text: undefined, record: emptyTable() } : { text, record: decodeTable(text) }
  }

  #adopt(found: Found): void {
    this.#known = found
    this.sightings.see(found.record, this.#clock.now())
    const isNext = this.entries.follow(found.record)
    this.#changed(found.record, isNext)
  }
}
