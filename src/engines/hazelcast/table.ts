import type { IMap } from 'hazelcast-client'
import type { Clock } from '../../clock.js'
import { answered, compareAndSet, MIN_CALL_TIME, pause } from './call.js'
import { UnclearError } from './failures.js'
import { KnownEntries } from './known-entries.js'
import type { MapLocks } from './map-locks.js'
import { Sightings } from './sightings.js'
import {
  decodeTable,
  emptyTable,
  encodeTable,
  TABLE_KEY,
  wasApplied,
  type Mark,
  type TableRecord,
} from './table-record.js'
import { runtimeTimers } from '../../runtime-timers.js'

/** How long a member waits for other boxes that have locked the record, in milliseconds. */
const LOCK_WAIT = 3000
/** The lease of that lock, in milliseconds. `MapLocks` requests up to two seconds more. */
const LOCK_LEASE = 0

/** The record as it was read. */
export interface Found {
  /** Undefined if there is none yet. */
  readonly text: string | undefined
  readonly record: TableRecord
}

/** A newer record. */
export interface TableChange {
  readonly record: TableRecord
  /** Whether this box made it. */
  readonly isOwn: boolean
  /** Whether it directly follows the last known record, so that none was missed. */
  readonly isNext: boolean
}

/** The table's record: reads it, changes it by compare-and-set, and follows the members' events. */
export class Table {
  readonly sightings = new Sightings()
  readonly entries = new KnownEntries()
  readonly #by: string
  readonly #map: () => Promise<IMap<string, string>>
  readonly #locks: MapLocks
  readonly #clock: Clock
  readonly #changed: (change: TableChange) => void
  #known: Found | undefined
  /** Whether this box has locked the record, unless the lease has ended. */
  #isLocked = false
  /** How many changes this box has tried. */
  #count = 0
  /** Records that arrived while a change of this box was being sent; undefined otherwise. */
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

  /** The newest known record; undefined before one was read. */
  get known(): Found | undefined {
    return this.#known
  }

  /** Handles a record that a member has reported. It may be late. */
  onRecord(text: string): void {
    // It may have overtaken the reply to a later change of this box. What that change ended would look lost.
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
    // Either a newer one was reported in the meantime, or the cluster has lost its entries.
    if (this.#known?.text !== undefined && found.record.turn < this.#known.record.turn)
      found = await this.#get()
    if (this.#known === undefined || found.text !== this.#known.text) this.#adopt(found, false)
    return this.#known!
  }

  /**
   * Changes the record if it is still the one that was found. Returns the new one, or undefined if it was not changed.
   * @param change returns the new record, with a mark in it.
   * @param until when to give up, as clock time.
   * @throws UnclearError if it is unknown whether it was changed
   */
  async change(found: Found, change: (mark: Mark) => TableRecord, until: number): Promise<Found | undefined> {
    const mark = { by: this.#by, count: ++this.#count }
    const record = change(mark)
    const text = encodeTable(record)
    const sentAt = this.#clock.now()
    this.#late = []
    try {
      const isApplied = await this.#apply(found, text, mark, until)
      if (!isApplied) {
        // These are the records of boxes that were faster.
        const late = this.#late
        this.#late = undefined
        for (const each of late) this.onRecord(each)
        return undefined
      }
      // Other boxes see it later, so a grant of this box ends here first.
      return this.#adopt({ text, record }, true, sentAt)
    } finally {
      const late = this.#late
      this.#late = undefined
      // After the caller has continued.
      if (late && late.length > 0) runtimeTimers.setImmediate(() => late.forEach(each => this.onRecord(each)))
    }
  }

  /**
   * Locks the record, in the order of arrival, until the next change or {@link unlock}. Until then, or until the lease
   * ends, changes of other boxes wait on the member. If a box has given up on such a change in the meantime, the change
   * is still applied only if the record is the one that it was made for. If other boxes have locked the record for too
   * long, it is not locked.
   * @throws what the client throws
   */
  async lock(): Promise<void> {
    if (!this.#isLocked) this.#isLocked = await this.#locks.tryLock(TABLE_KEY, LOCK_WAIT, LOCK_LEASE, true)
  }

  /** Unlocks the record if it is locked, without waiting. If that fails, the lock ends with its lease. */
  unlock(): void {
    if (!this.#isLocked) return
    this.#isLocked = false
    this.#locks.unlockOnce(TABLE_KEY).catch(() => undefined)
  }

  async #apply(found: Found, text: string, mark: Mark, until: number): Promise<boolean> {
    const limit = Math.max(until - this.#clock.now(), MIN_CALL_TIME)
    try {
      return await answered(this.#replace(found.text, text), this.#clock, limit)
    } catch (cause) {
      return this.#settle(found, text, mark, until, cause)
    }
  }

  /**
   * Finds out whether a change was applied whose reply was lost. Sends it again if it was not, which is harmless
   * because it is the same change.
   */
  async #settle(found: Found, text: string, mark: Mark, until: number, cause: unknown): Promise<boolean> {
    const inTime = <T>(call: Promise<T>): Promise<T> =>
      answered(call, this.#clock, Math.max(until - this.#clock.now(), 0))
    while (this.#clock.now() < until) {
      try {
        const now = await inTime(this.#get())
        if (now.text !== found.text) {
          const isApplied = wasApplied(now.record, mark, found.record)
          if (isApplied === undefined) break
          if (!isApplied && now.text !== undefined) this.#late?.push(now.text)
          return isApplied
        }
        if (await inTime(this.#replace(found.text, text))) return true
      } catch {
        await pause(this.#clock, true)
      }
    }
    throw new UnclearError('the reply to a change was lost', { cause })
  }

  async #replace(before: string | undefined, after: string): Promise<boolean> {
    const call = compareAndSet(await this.#map(), TABLE_KEY, before, after, this.#clock)
    // The member executes it after the change. Other boxes need not wait for the reply.
    this.unlock()
    return call
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
