import type { Clock, Timer } from '../../clock.js'
import { pause } from './call.js'
import type { Table } from './table.js'
import type { TableRecord } from './table-record.js'
import { stampOf } from './value-entry.js'
import type { Values } from './values.js'

/** After this long in the record, a change is written back by any box that sees it, in milliseconds. */
const HELP_AFTER = 2000
/** Maximum time until changes that were written back are removed from the record, in milliseconds. */
const REMOVE_WITHIN = 20

/** Writes the pending changes of the record back to the entries of their keys. */
export class WriteBack {
  readonly #table: Table
  readonly #values: Values
  readonly #clock: Clock
  readonly #removeWritten: () => Promise<void>
  /** By key: the stamp of a change that was written back and is still in the record. */
  readonly #done = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<void>>()
  #helping: Timer | undefined
  #removing: Timer | undefined
  #isLeaving = false
  #isClosed = false

  /** @param removeWritten removes the changes from the record that are {@link done}. It never rejects. */
  constructor(table: Table, values: Values, clock: Clock, removeWritten: () => Promise<void>) {
    this.#table = table
    this.#values = values
    this.#clock = clock
    this.#removeWritten = removeWritten
  }

  /** Writes the changes back that this box has committed. @param entries by key: the entry that is probably there. */
  begin(before: TableRecord, after: TableRecord, entries: ReadonlyMap<string, string | undefined>): void {
    for (const [key, text] of Object.entries(after.pending))
      if (before.pending[key] !== text) this.#begin(key, before.pending[key] ?? entries.get(key))
  }

  /**
   * Writes back changes that no box has written back in time, because the box that committed them may have died. It
   * needs no further event, and no clock of another process.
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

  /** The changes in the record that were written back, by key and stamp. */
  done({ pending }: TableRecord): ReadonlyMap<string, number> {
    for (const [key, stamp] of this.#done) {
      const text = pending[key]
      if (text === undefined || stampOf(text) > stamp) this.#done.delete(key)
    }
    return this.#done
  }

  /** Writes back no more changes of other boxes. Resolves when the changes of this box are written back and removed. */
  async leave(): Promise<void> {
    this.#isLeaving = true
    this.#helping?.cancel()
    this.#removing?.cancel()
    await Promise.all(this.#underWay.values())
    // Otherwise boxes that are open for a moment would fill the record, which every change writes.
    if (this.#done.size > 0) await this.#removeWritten()
  }

  /** Cancels what is still running. */
  close(): void {
    this.#isClosed = true
  }

  #begin(key: string, before: string | undefined): void {
    if (this.#underWay.has(key) || this.#unwritten(key) === undefined) return
    this.#underWay.set(key, this.#writeBack(key, before))
  }

  /** Retries failures. Until then, readers find the change in the record. */
  async #writeBack(key: string, before: string | undefined): Promise<void> {
    let entry = before
    let hasFailed = false
    for (
      let text = this.#unwritten(key);
      text !== undefined && !this.#isClosed;
      text = this.#unwritten(key)
    ) {
      try {
        // Another box may have written it back since, and a later change may have deleted the entry and been removed.
        if (hasFailed) await this.#table.read()
        else {
          await this.#values.put(key, entry, text)
          entry = text
          this.#onWritten(key, text)
        }
        hasFailed = false
      } catch {
        hasFailed = true
        await pause(this.#clock, false)
      }
    }
    this.#underWay.delete(key)
  }

  /** The change of this key that must be written back. */
  #unwritten(key: string): string | undefined {
    const text = this.#table.known!.record.pending[key]
    return text !== undefined && stampOf(text) > (this.#done.get(key) ?? 0) ? text : undefined
  }

  #onWritten(key: string, text: string): void {
    this.#done.set(key, stampOf(text))
    if (this.#removing || this.#isLeaving) return
    this.#removing = this.#clock.after(
      REMOVE_WITHIN,
      () => {
        this.#removing = undefined
        if (this.#done.size > 0) void this.#removeWritten()
      },
      false,
    )
  }
}
