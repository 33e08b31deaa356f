import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered, pause } from './call.js'
import { UnclearError } from './failures.js'
import { KnownEntries } from './known-entries.js'
import type { MapLocks } from './map-locks.js'
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

/** How long a member waits for other boxes that have locked the record, in milliseconds. */
const LOCK_WAIT = 3000
/** The lease of that lock, in milliseconds. `MapLocks` asks for two seconds more. */
const LOCK_LEASE = 0

/** The record as it was read. */
export interface Found {
  /** Undefined when there is none yet. */
  readonly text: string | undefined
  readonly record: TableRecord
}

/** A newer record. */
export interface TableChange {
  readonly record: TableRecord
  /** Whether this box made it. */
  readonly isOwn: boolean
  /** Whether it follows the record that was known before, so that none was missed. */
  readonly isNext: boolean
}

/** The table's record: read, changed by compare-and-set, and followed by what members report of it. */
export class Table {
  readonly sightings = new Sightings()
  readonly entries = new KnownEntries()
  readonly #by: string
  readonly #map: () => Promise<IMap<string, string>>
  readonly #locks: MapLocks
  readonly #clock: Clock
  readonly #changed: (change: TableChange) => void
  #known: Found | undefined
  /** How many changes this box has tried. */
  #count = 0
  /** Records that arrived while a change of this box was on its way; undefined when none is. */
  #late: string[] | undefined

  /**
   * @param by the name under which this box changes the record.
   * @param locks those of the map.
   * @param changed is called with each newer record.
   */
  constructor(
    by: string,
    map: () => Promise<IMap<string, string>>,
    locks: MapLocks,
    clock: Clock,
    changed: (change: TableChange) => void,
  ) {
    this.#by = by
    this.#map = map
    this.#locks = locks
    this.#clock = clock
    this.#changed = changed
  }

  /** The newest record that is known here; undefined before one was read. */
  get known(): Found | undefined {
    return this.#known
  }

  /** A member has reported this record. It may be late. */
  heard(text: string): void {
    // It may have overtaken the answer to a later change of this box. What that change ended would look lost.
    if (this.#late) return void this.#late.push(text)
    let record: TableRecord
    try {
      record = decodeTable(text)
    } catch {
      // The next operation that reads it fails.
      return
    }
    const known = this.#known
    if (known && (known.text === undefined || record.turn > known.record.turn))
      this.#adopt({ text, record }, false)
  }

  /** Reads the record. @throws what the client throws */
  async read(): Promise<Found> {
    let found = await this.#get()
    // Either a newer one was reported meanwhile, or the cluster has lost its entries.
    if (this.#known?.text !== undefined && found.record.turn < this.#known.record.turn)
      found = await this.#get()
    if (this.#known === undefined || found.text !== this.#known.text) this.#adopt(found, false)
    return this.#known!
  }

  /**
   * Changes the record, if it is still as it was found, and returns the new one. Undefined: it was not changed.
   * @param change makes the new record, with a mark in it.
   * @param until when to give up: clock time.
   * @throws UnclearError when it is not known whether it was changed
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
        // These are the records of the boxes that were faster.
        const late = this.#late
        this.#late = undefined
        for (const each of late) this.heard(each)
        return undefined
      }
      // Other boxes see it later, so a grant of this box ends here first.
      return this.#adopt({ text, record }, true, sentAt)
    } finally {
      const late = this.#late
      this.#late = undefined
      // After the caller of this has gone on.
      if (late && late.length > 0) setImmediate(() => late.forEach(each => this.heard(each)))
    }
  }

  /**
   * Locks the record, in the order of arrival. Until it is unlocked, or the lease ends, changes of other boxes wait on
   * the member. One of them that its box has given up meanwhile is like one that was long on its way: it is made only
   * if the record is still the one that it belongs to. False: other boxes have locked the record for too long.
   * @throws what the client throws
   */
  lock(): Promise<boolean> {
    return this.#locks.tryLock(TABLE_KEY, LOCK_WAIT, LOCK_LEASE, true)
  }

  /** Unlocks the record. Does not wait for it: what can't be unlocked ends with its lease. */
  unlock(): void {
    this.#locks.unlock(TABLE_KEY).catch(() => undefined)
  }

  async #made(found: Found, text: string, mark: Mark, until: number): Promise<boolean> {
    try {
      return await this.#replace(found.text, text)
    } catch (cause) {
      return this.#settle(found, text, mark, until, cause)
    }
  }

  /**
   * Finds out whether a change was made whose answer was lost. Sends it again where it was not, which is harmless: it
   * is the same change.
   */
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
        await pause(this.#clock, true)
      }
    }
    throw new UnclearError('the reply to a change was lost', { cause })
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

  #adopt(found: Found, isOwn: boolean, seenAt = this.#clock.now()): Found {
    const { record } = found
    this.#known = found
    this.sightings.see(record, seenAt)
    const isNext = this.entries.follow(record)
    this.#changed({ record, isOwn, isNext })
    return found
  }
}
