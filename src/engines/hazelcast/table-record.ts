import type { Claim } from '../../engine/claim.js'
import { UnreadableError } from './failures.js'

/** The key of the table's record, in the map of the table. */
export const TABLE_KEY = 'table'

/** Identifies a change of the record: the box that made it, and how many changes that box had tried by then. */
export interface Mark {
  readonly by: string
  readonly count: number
}

/** A request in the table's record. */
export interface RequestRecord {
  readonly id: string
  readonly session: string
  readonly claims: readonly Claim[]
  readonly phase: 'waiting' | 'reserved' | 'held'
  /** How long the request lives after its last heartbeat, in milliseconds. */
  readonly ttl: number
  /** The change that was its last heartbeat. While it stays the same, the TTL runs down. */
  readonly heartbeat: string
  /** The lease that it asked for, in milliseconds. */
  readonly lease: number
  readonly number: number
  readonly label?: string | undefined
  /** When it was queued, by the wall clock of its box, for `inspect`. */
  readonly since: number
}

/**
 * All locks of a place, and the committed changes of values that are not yet written back. It is one entry of a map, so
 * that one compare-and-set decides all of them.
 */
export interface TableRecord {
  /** Counts the changes of the record. Starts at the wall clock in microseconds. */
  readonly turn: number
  /** The number of the newest grant. */
  readonly number: number
  /** The version of the newest change of a value. */
  readonly version: number
  /** The change that made the previous record; undefined for the first one. */
  readonly follows: Mark | undefined
  /**
   * The latest change of each box, oldest first, so the last one made this record. With these, a box whose reply was
   * lost finds out whether its change was applied.
   */
  readonly latest: readonly Mark[]
  /** In order of arrival. */
  readonly requests: readonly RequestRecord[]
  /** By store key: the future text of its entry. */
  readonly pending: Readonly<Record<string, string>>
}

/** Maximum number of boxes whose latest change is kept. */
const MAX_MARKS = 32
const PHASES = ['waiting', 'reserved', 'held'] as const

/** The record of a new place. */
export function emptyTable(): TableRecord {
  const turn = microseconds()
  return { turn, number: turn, version: turn, follows: undefined, latest: [], requests: [], pending: {} }
}

/** Every change writes this, and every box reads it, so it is short. */
type Head = [
  by: string,
  turn: number,
  number: number,
  version: number,
  follows: MarkText | null,
  latest: MarkText[],
  sessions: string[],
  requests: RequestText[],
  pending: [key: string, length: number][],
]
type MarkText = [by: string, count: number]
type RequestText = [
  id: string,
  session: number,
  claims: ClaimText[],
  phase: number,
  ttl: number,
  heartbeat: string,
  lease: number,
  number: number,
  since: number,
  label?: string,
]
/** An exclusive claim, a shared one, and permits. */
type ClaimText = string | [key: string] | [key: string, permits: number, max: number]

/** Encodes a record as a line of JSON, which begins with the box that made it, and the pending entries as they are. */
export function encodeTable(record: TableRecord): string {
  const { turn, number, version, follows, latest, requests, pending } = record
  const sessions = new Map<string, number>()
  for (const { session } of requests) if (!sessions.has(session)) sessions.set(session, sessions.size)
  const entries = Object.entries(pending)
  const head: Head = [
    latest.at(-1)?.by ?? '',
    turn,
    number,
    version,
    follows ? [follows.by, follows.count] : null,
    latest.map(({ by, count }) => [by, count]),
    [...sessions.keys()],
    requests.map(request => encodeRequest(request, sessions.get(request.session)!)),
    entries.map(([key, text]) => [key, text.length]),
  ]
  return `${JSON.stringify(head)}\n${entries.map(([, text]) => text).join('')}`
}

/** Decodes what {@link encodeTable} wrote. @throws UnreadableError for any other text */
export function decodeTable(text: string): TableRecord {
  try {
    return decoded(text)
  } catch (error) {
    throw new UnreadableError("can't read the record of the table", { cause: error })
  }
}

function decoded(text: string): TableRecord {
  const end = text.indexOf('\n')
  const head = JSON.parse(text.slice(0, end)) as Head
  const [, turn, number, version, follows, latest, sessions, requests, lengths] = head
  const pending: Record<string, string> = {}
  let at = end + 1
  for (const [key, length] of lengths) pending[key] = text.slice(at, (at += length))
  return {
    turn,
    number,
    version,
    follows: follows ? markOf(follows) : undefined,
    latest: latest.map(markOf),
    requests: requests.map(request => decodeRequest(request, sessions)),
    pending,
  }
}

/** In text order, the records that this box made are between these two texts, and no others. */
export function rangeOf(by: string): readonly [from: string, to: string] {
  // The dash is the character after the comma. A pattern would make members match it against each whole record.
  return [`["${by}",`, `["${by}"-`]
}

function markOf([by, count]: MarkText): Mark {
  return { by, count }
}

function encodeRequest(request: RequestRecord, session: number): RequestText {
  const { id, claims, phase, ttl, heartbeat, lease, number, since, label } = request
  const text: RequestText = [
    id,
    session,
    claims.map(encodeClaim),
    PHASES.indexOf(phase),
    ttl,
    heartbeat,
    lease,
    number,
    since,
  ]
  if (label !== undefined) text.push(label)
  return text
}

function decodeRequest(text: RequestText, sessions: readonly string[]): RequestRecord {
  const [id, session, claims, phase, ttl, heartbeat, lease, number, since, label] = text
  return {
    id,
    session: sessions[session]!,
    claims: claims.map(decodeClaim),
    phase: PHASES[phase]!,
    ttl,
    heartbeat,
    lease,
    number,
    label,
    since,
  }
}

function encodeClaim(claim: Claim): ClaimText {
  switch (claim.mode) {
    case 'exclusive':
      return claim.key
    case 'shared':
      return [claim.key]
    case 'permits':
      return [claim.key, claim.permits, claim.max]
  }
}

function decodeClaim(text: ClaimText): Claim {
  if (typeof text === 'string') return { key: text, mode: 'exclusive' }
  const [key, permits, max] = text
  return permits === undefined ? { key, mode: 'shared' } : { key, mode: 'permits', permits, max: max! }
}

export function textOfMark({ by, count }: Mark): string {
  return `${by}.${count}`
}

/** Appends a mark, and removes the previous one of the same box. */
export function marked(latest: readonly Mark[], mark: Mark): Mark[] {
  return [...latest.filter(({ by }) => by !== mark.by), mark].slice(-MAX_MARKS)
}

/**
 * Whether the change with this mark was applied to the record `before`, as the current record shows; undefined if it no
 * longer shows it. The change must be the latest that its box has tried.
 */
export function wasApplied(now: TableRecord, mark: Mark, before: TableRecord): boolean | undefined {
  const own = now.latest.find(({ by }) => by === mark.by)
  if (own) return own.count >= mark.count
  const since = now.turn - before.turn
  // It has the marks of all boxes since the first record, or since `before`.
  const isWhole =
    now.latest.length > 0 && (now.latest.length < MAX_MARKS || (since >= 0 && since <= MAX_MARKS))
  return isWhole ? false : undefined
}

/** The wall clock. Counters start there, so that they increase even if all data was lost. */
export function microseconds(): number {
  return Date.now() * 1000
}
