import type { Versioned } from '../../engine/contract.js'

/** The record of a key: its value, its last writer, and the transaction that is about to write it. */
export interface KeyRecord {
  /** JSON text; undefined if the key is absent. */
  readonly value: string | undefined
  /** The version of the last change or deletion; 0 before the first. */
  readonly version: number
  /** The greatest token of all commits with this key; 0 before the first. */
  readonly token: bigint
  /** The IDs of committed changes, with the wall-clock time until which each is kept. */
  readonly ids: ReadonlyMap<string, number>
  /** The outcomes of the last attempts that were decided in this record, the newest first. */
  readonly decided: readonly string[]
  /** The wall-clock time until which a record without a value is kept, unless one of its IDs is kept longer. */
  readonly until: number
  readonly stamp: Stamp | undefined
}

/** A transaction in the record of one of its keys. */
export type Stamp = Pointer | Primary

interface Stamped {
  /** Unique among all attempts to commit. */
  readonly attempt: string
  readonly token: bigint
  /** Until when its records without a value are kept: a wall-clock time. */
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
  readonly others: readonly string[]
  /** The outcome of the other keys; empty until it is committed. */
  readonly changes: ReadonlyMap<string, Change>
}

export interface Change {
  /** Undefined if the key was only read. */
  readonly write: { readonly value: string | undefined; readonly version: number } | undefined
  readonly ids: ReadonlyMap<string, number>
}

export const BLANK: KeyRecord = {
  value: undefined,
  version: 0,
  token: 0n,
  ids: new Map(),
  decided: [],
  until: 0,
  stamp: undefined,
}

/** Maximum number of decisions in a record, for attempts whose answers were lost. */
const REMEMBERED = 8
/** Minimum time for which a record without a value is kept, longer than any write is on its way, in milliseconds. */
const DELETED_FOR = 3_600_000

export function versioned({ value, version }: KeyRecord): Versioned {
  return { value, version: value === undefined ? 0 : version }
}

/** A version that this key never had. It follows the wall clock, in case the record of an absent key was dropped. */
export function nextVersion(record: KeyRecord, now: number): number {
  return Math.max(record.version + 1, Math.floor(now * 1000))
}

/** Minimum time to keep a record unless it is overwritten, in milliseconds; undefined for forever. */
export function keptFor(record: KeyRecord, now: number): number | undefined {
  if (record.value !== undefined || record.stamp !== undefined) return undefined
  let until = Math.max(record.until, now + DELETED_FOR)
  for (const end of record.ids.values()) until = Math.max(until, end)
  return Math.ceil(until - now)
}

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

/** Adds a decision to a record, for attempts whose answer was lost. */
export function decidedIn(record: KeyRecord, attempt: string, isCommitted: boolean): KeyRecord {
  const mark = markOf(attempt, isCommitted)
  return { ...record, decided: [mark, ...record.decided].slice(0, REMEMBERED) }
}

export function isDecided(record: KeyRecord, attempt: string, isCommitted: boolean): boolean {
  return record.decided.includes(markOf(attempt, isCommitted))
}

function markOf(attempt: string, isCommitted: boolean): string {
  return (isCommitted ? '+' : '-') + attempt
}

/** Whether a later state of a record may have dropped decisions that were made since an earlier one. */
export function canHaveForgotten(earlier: KeyRecord, later: KeyRecord): boolean {
  if (later.decided.length < REMEMBERED) return false
  const last = earlier.decided[0]
  return last === undefined || !later.decided.includes(last)
}
