import type { Versioned } from '../../engine/contract.js'

/** What a key's record says: its value, who wrote it, and the transaction that is about to write it. */
export interface KeyRecord {
  /** JSON text; undefined when the key is absent. */
  readonly value: string | undefined
  /** Of the last change, a deletion included; 0 before the first. */
  readonly version: number
  /** The greatest token of those that committed with this key; 0 before the first. */
  readonly token: bigint
  /** The ids of changes that were committed, with the wall-clock time until which each is kept. */
  readonly ids: ReadonlyMap<string, number>
  /** The outcome of the last attempts that were decided in this record, the newest first. */
  readonly decided: readonly string[]
  /** The wall-clock time until which a record without value is kept, unless one of its ids is kept for longer. */
  readonly until: number
  readonly stamp: Stamp | undefined
}

/** A transaction in the record of one of its keys. */
export type Stamp = Pointer | Primary

interface Stamped {
  /** Unique among all attempts to commit. */
  readonly attempt: string
  readonly token: bigint
  /** How long its records are kept where they have no value: a wall-clock time. */
  readonly until: number
}

/** In the record of every key but the first: points to the transaction. */
export interface Pointer extends Stamped {
  readonly state: 'pointer'
  readonly primary: string
}

/** The transaction itself, in the record of its first key. */
export interface Primary extends Stamped {
  readonly state: 'pending' | 'aborted' | 'committed'
  /** The other keys. */
  readonly others: readonly string[]
  /** The outcome of the other keys; empty until it is committed. */
  readonly changes: ReadonlyMap<string, Change>
}

/** What a transaction does to a key. */
export interface Change {
  /** Undefined for a key that was only read. */
  readonly write: { readonly value: string | undefined; readonly version: number } | undefined
  readonly ids: ReadonlyMap<string, number>
}

/** The record of a key that has none. */
export const BLANK: KeyRecord = {
  value: undefined,
  version: 0,
  token: 0n,
  ids: new Map(),
  decided: [],
  until: 0,
  stamp: undefined,
}

/** So many decisions are remembered in a record, for those whose answer was lost. */
const REMEMBERED = 8
/** Minimum time for which a record without a value is kept, longer than any write takes to arrive, in milliseconds. */
const DELETED_FOR = 3_600_000

/** The value, for a reader. */
export function versioned({ value, version }: KeyRecord): Versioned {
  return { value, version: value === undefined ? 0 : version }
}

/** A version that this key never had: by the wall clock, should the record of an absent key have been dropped. */
export function nextVersion(record: KeyRecord, now: number): number {
  return Math.max(record.version + 1, Math.floor(now * 1000))
}

/** How long a record must be kept unless it is overwritten, in milliseconds; undefined for forever. */
export function keptFor(record: KeyRecord, now: number): number | undefined {
  if (record.value !== undefined || record.stamp !== undefined) return undefined
  let until = Math.max(record.until, now + DELETED_FOR)
  for (const end of record.ids.values()) until = Math.max(until, end)
  return Math.ceil(until - now)
}

/** The record with a transaction in it. */
export function stamped(record: KeyRecord, stamp: Stamp): KeyRecord {
  return { ...record, stamp }
}

/** The record as it was before a transaction that was aborted. */
export function unstamped(record: KeyRecord): KeyRecord {
  return { ...record, until: Math.max(record.until, record.stamp?.until ?? 0), stamp: undefined }
}

/** The record after a change, with its stamp if it has one. */
export function changed(
  record: KeyRecord,
  { write, ids }: Change,
  token: bigint,
  until: number,
  now: number,
): KeyRecord {
  const kept = [...record.ids, ...ids].filter(([, end]) => end > now)
  return {
    ...record,
    ...write,
    // mutant: commit-without-token
    token: token > record.token ? token : record.token,
    // mutant: record-without-ids
    ids: new Map(kept),
    until: Math.max(record.until, until),
  }
}

/** The record with a decision in it that those whose answer was lost look for. */
export function decidedIn(record: KeyRecord, attempt: string, isCommitted: boolean): KeyRecord {
  const mark = markOf(attempt, isCommitted)
  return { ...record, decided: [mark, ...record.decided].slice(0, REMEMBERED) }
}

/** Whether an attempt was decided so, as far as the record remembers. */
export function isDecided(record: KeyRecord, attempt: string, isCommitted: boolean): boolean {
  return record.decided.includes(markOf(attempt, isCommitted))
}

function markOf(attempt: string, isCommitted: boolean): string {
  return (isCommitted ? '+' : '-') + attempt
}

/** Whether a record with a later state can have forgotten decisions that were made since an earlier one. */
export function canHaveForgotten(earlier: KeyRecord, later: KeyRecord): boolean {
  if (later.decided.length < REMEMBERED) return false
  const last = earlier.decided[0]
  return last === undefined || !later.decided.includes(last)
}
