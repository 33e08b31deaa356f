import type { Claim } from 'signalbox'

/** IDs of changes, and until when they are kept, in milliseconds since 1970. */
export type RecordedIds = readonly (readonly [id: string, until: number])[]

/** Identifies a change of an entry: the box that made it, and how many changes that box had tried by then. */
export interface Mark {
  readonly by: string
  readonly count: number
}

/** A request in the queue of a key. */
export interface KeyRequest {
  readonly id: string
  readonly session: string
  /** Its claim on this key. */
  readonly claim: Claim
  /** A set is `here` when this key is kept for it until it has all of its keys. */
  readonly phase: 'waiting' | 'reserved' | 'here' | 'held'
  /** Its lifetime after its last heartbeat, in milliseconds. */
  readonly ttl: number
  /**
   * The change that was its last heartbeat. While it stays the same, the TTL runs down. For a set at a key other than
   * the first, the change with which it came.
   */
  readonly heartbeat: string
  /** The lease that it asked for, in milliseconds. */
  readonly lease: number
  readonly number: number
  /** The time at which it was queued, by the wall clock of its box, for `inspect`. */
  readonly since: number
  readonly label?: string | undefined
  /** The sign of its session that renews its grant; undefined if each renewal changes the entry. */
  readonly sign?: number | undefined
  /** Its part of a set of several keys; undefined for a request for this key alone. */
  readonly set?: SetHome | SetPointer | undefined
}

/** The request of a set in the entry of its first key, which alone decides whether the set is granted. */
export interface SetHome {
  /** The claims on its other keys. */
  readonly others: readonly Claim[]
  /** The stamps of writes without a lock to its other keys, since it is in their queues. */
  readonly overwritten: readonly (readonly [key: string, stamp: number])[]
}

/** The request of a set in the entry of another key. It is valid as long as the entry of the first key has the set. */
export interface SetPointer {
  /** The first key. */
  readonly home: string
}

/** A commit of a set, until it is applied to its other keys. */
export interface Decided {
  readonly id: string
  readonly number: number
  /** The effect on each other key. */
  readonly changes: readonly KeyChange[]
}

/** The effect of a commit on a key; undefined if it writes nothing there. */
export interface KeyChange {
  readonly key: string
  readonly write: { readonly version: number; readonly value: string | undefined } | undefined
  /** IDs to record, and until when. */
  readonly ids: RecordedIds
}

/** The locks of a key. */
export interface KeyLocks {
  /** Counts the changes of the entry. Starts at the wall clock in microseconds, so that no text ever returns. */
  readonly turn: number
  /** The number of the newest grant. */
  readonly number: number
  /** The latest change of each box, oldest first, so the last one made this entry. */
  readonly marks: readonly Mark[]
  /** The requests, in the order of their turns. */
  readonly requests: readonly KeyRequest[]
  /** The sets that ended here last, by ID. A key that refers to one of them is freed at once. */
  readonly ended: readonly string[]
  readonly decided: readonly Decided[]
  /** Whether sets may wait in the waiting room for this key, so that no other set may take it before them. */
  readonly isAwaited: boolean
}

/** The stored state of a key: its value, the IDs recorded with it, and its locks. One compare-and-set changes it. */
export interface KeyEntry {
  /** The version of the last change of the value or of its IDs. */
  readonly stamp: number
  /** The version of the value; 0 if there is none. */
  readonly version: number
  readonly ids: RecordedIds
  /** JSON; undefined if there is none. */
  readonly value: string | undefined
  readonly locks: KeyLocks
}

/** Maximum number of boxes whose latest change is kept. */
const MAX_MARKS = 12

/** Returns the entry of an unused key. @param floor is below all of its later numbers. */
export function emptyEntry(floor = 0): KeyEntry {
  const turn = Math.max(microseconds(), floor)
  const locks = { turn, number: floor, marks: [], requests: [], ended: [], decided: [], isAwaited: false }
  return { stamp: floor, version: 0, ids: [], value: undefined, locks }
}

/** Whether an entry has no data that any box needs. */
export function isFree({ value, ids, locks }: KeyEntry): boolean {
  const now = Date.now()
  return (
    value === undefined &&
    locks.requests.length + locks.decided.length === 0 &&
    ids.every(([, until]) => until <= now)
  )
}

export function textOfMark({ by, count }: Mark): string {
  return `${by}.${count}`
}

/** Appends a mark, and removes the previous one of the same box. */
export function marked(marks: readonly Mark[], mark: Mark): Mark[] {
  return [...marks.filter(({ by }) => by !== mark.by), mark].slice(-MAX_MARKS)
}

/**
 * Whether the change with this mark was applied to `before`, as the current locks show; undefined if they no longer
 * show it. The change must be the latest of this entry that its box has tried.
 */
export function wasApplied(now: KeyLocks, mark: Mark, before: KeyLocks): boolean | undefined {
  const own = now.marks.find(({ by }) => by === mark.by)
  if (own) return own.count >= mark.count
  const since = now.turn - before.turn
  // It has the marks of all boxes since the first change, or since `before`.
  const isWhole = now.marks.length > 0 && (now.marks.length < MAX_MARKS || (since >= 0 && since <= MAX_MARKS))
  return isWhole ? false : undefined
}

/** The wall clock. Counters start there, so that they increase even if all data was lost. */
export function microseconds(): number {
  return Date.now() * 1000
}
