import type { Claim } from '../../locks/claim.js'

/** A request as the table's record has it. */
export interface RequestRecord {
  readonly id: string
  readonly session: string
  readonly claims: readonly Claim[]
  readonly phase: 'waiting' | 'reserved' | 'held'
  /** How long it lives after it was heard of: milliseconds. */
  readonly life: number
  /** The record's `turn` in which it was heard of last: as long as that stays the same, its life runs down. */
  readonly beat: number
  /** The lease that it asked for: milliseconds. */
  readonly lease: number
  readonly number: number
  readonly label?: string | undefined
  /** When it entered the queues, by the wall clock of who asked; for those who look. */
  readonly since: number
}

/**
 * All locks of one place, and the changes of values that were committed and are not yet carried over: one entry of a map,
 * so that one compare-and-set decides about all of them.
 */
export interface TableRecord {
  /** Counts the changes of the record. Begins at the wall clock in microseconds, so that no record ever comes twice. */
  readonly turn: number
  /** The number of the newest grant. */
  readonly number: number
  /** The version of the newest change of a value. */
  readonly version: number
  /** The marks of the latest changes, oldest first: how one whose answer was lost finds itself. */
  readonly recent: readonly string[]
  /** In order of arrival. */
  readonly requests: readonly RequestRecord[]
  /** By store key: what its entry will be, as text. */
  readonly pending: Readonly<Record<string, string>>
}

/** So many changes are remembered by their marks. */
const MARKS = 32

/** The record of a place where nobody was before. */
export function emptyTable(): TableRecord {
  const turn = microseconds()
  return { turn, number: turn, version: turn, recent: [], requests: [], pending: {} }
}

export function encodeTable(record: TableRecord): string {
  return JSON.stringify(record)
}

/** What {@link encodeTable} made. @throws Error when it was not that */
export function decodeTable(text: string): TableRecord {
  return JSON.parse(text) as TableRecord
}

/** The marks with one more. */
export function marked(recent: readonly string[], mark: string): string[] {
  return [...recent, mark].slice(-MARKS)
}

/**
 * Whether the change with this mark was made to the record `before`, by what is there now; undefined when that can't be
 * told any more.
 */
export function wasMade(now: TableRecord, mark: string, before: TableRecord): boolean | undefined {
  if (now.recent.includes(mark)) return true
  const since = now.turn - before.turn
  // All marks that ever were are there still, or all since.
  const isWhole = now.recent.length > 0 && (now.recent.length < MARKS || (since >= 0 && since <= MARKS))
  return isWhole ? false : undefined
}

/** The wall clock, where counters begin: so they rise although all data was lost. */
export function microseconds(): number {
  return Date.now() * 1000
}
