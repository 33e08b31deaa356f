import type { Clock, Timer } from '../../clock.js'
import { pause } from './call.js'
import type { Table } from './table.js'
import type { TableRecord } from './table-record.js'
import { stampOf } from './value-entry.js'
import type { Values } from './values.js'

/** A change that is still in the record after so long is carried over by any box that sees it: milliseconds. */
const HELP_AFTER = 2000
/** Changes that are carried over leave the record with its next change, or after so long: milliseconds. */
const FORGET_WITHIN = 20

/** Carries the changes that the record has pending over to the entries of their keys. */
export class WriteBack {
  readonly #table: Table
  readonly #values: Values
  readonly #clock: Clock
  readonly #forget: () => void
  /** By key: the stamp of a change that is carried over and still in the record. */
  readonly #done = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<void>>()
  #helping: Timer | undefined
  #forgetting: Timer | undefined
  #isLeaving = false
  #isClosed = false

  /** @param forget changes the record, so that it loses what is {@link done}. */
  constructor(table: Table, values: Values, clock: Clock, forget: () => void) {
    this.#table = table
    this.#values = values
    this.#clock = clock
    this.#forget = forget
  }

  /** Carries over the changes that this box has committed. @param before by key: the entry that is probably there. */
  begin(before: TableRecord, after: TableRecord, entries: ReadonlyMap<string, string | undefined>): void {
    for (const [key, text] of Object.entries(after.pending))
      if (before.pending[key] !== text) this.#begin(key, before.pending[key] ?? entries.get(key))
  }

  /**
   * Sees to the changes in the record that no box has carried over in time: the box that committed them may have
   * died. No other event and no clock of another process is needed for that.
   */
  follow({ pending }: TableRecord): void {
    if (this.#helping || this.#isLeaving || Object.keys(pending).length === 0) return
    this.#helping = this.#clock.after(
      HELP_AFTER,
      () => {
        this.#helping = undefined
        const { record } = this.#table.known!
        for (const [key, text] of Object.entries(record.pending))
          if (pending[key] === text) this.#begin(key, undefined)
        this.follow(record)
      },
      false,
    )
  }

  /** The changes in the record that are carried over, by key and stamp. */
  done({ pending }: TableRecord): ReadonlyMap<string, number> {
    for (const [key, stamp] of this.#done) {
      const text = pending[key]
      if (text === undefined || stampOf(text) > stamp) this.#done.delete(key)
    }
    return this.#done
  }

  /** Gives changes of other boxes up to those. Settles when the changes of this box are carried over. */
  async leave(): Promise<void> {
    this.#isLeaving = true
    this.#helping?.cancel()
    this.#forgetting?.cancel()
    await Promise.all(this.#underWay.values())
  }

  /** Gives up what is still under way. */
  close(): void {
    this.#isClosed = true
  }

  #begin(key: string, before: string | undefined): void {
    if (this.#underWay.has(key) || this.#left(key) === undefined) return
    this.#underWay.set(key, this.#carry(key, before))
  }

  /** What fails is tried again. Until then readers find the change in the record. */
  async #carry(key: string, before: string | undefined): Promise<void> {
    let entry = before
    let hasFailed = false
    for (let text = this.#left(key); text !== undefined && !this.#isClosed; text = this.#left(key)) {
      try {
        // Another box may have carried it over since, and a later change may have deleted the entry and be forgotten.
        if (hasFailed) await this.#table.read()
        else {
          await this.#values.put(key, entry, text)
          entry = text
          this.#carried(key, text)
        }
        hasFailed = false
      } catch {
        hasFailed = true
        await pause(this.#clock, false)
      }
    }
    this.#underWay.delete(key)
  }

  /** The change of this key that has to be carried over. */
  #left(key: string): string | undefined {
    const text = this.#table.known!.record.pending[key]
    return text !== undefined && stampOf(text) > (this.#done.get(key) ?? 0) ? text : undefined
  }

  #carried(key: string, text: string): void {
    this.#done.set(key, stampOf(text))
    if (this.#forgetting || this.#isLeaving) return
    this.#forgetting = this.#clock.after(
      FORGET_WITHIN,
      () => {
        this.#forgetting = undefined
        if (this.#done.size > 0) this.#forget()
      },
      false,
    )
  }
}
