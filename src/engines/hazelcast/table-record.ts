import type { Claim } from '../../engine/claim.js'
import { UnreadableError } from './failures.js'

/** The key of the table's record, in the map of the table. */
export const TABLE_KEY = 'table'

/** Tells a change of the record from all others: the box that made it, and how many that box had tried by then. */
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
  /** How long it lives after its box was heard of: milliseconds. */
  readonly life: number
  /** The change by which its box was heard of last. As long as that stays the same, its life runs down. */
  readonly beat: string
  /** The lease that it asked for: milliseconds. */
  readonly lease: number
  readonly number: number
  readonly label?: string | undefined
  /** When it entered the queues, by the wall clock of its box; `inspect` shows it. */
  readonly since: number
}

/**
 * All locks of one place, and the changes of values that are committed and not yet carried over: one entry of a map,
 * so that one compare-and-set decides about all of them.
 */
export interface TableRecord {
  /** Counts the changes of the record. Begins at the wall clock in microseconds. */
  readonly turn: number
  /** The number of the newest grant. */
  readonly number: number
  /** The version of the newest change of a value. */
  readonly version: number
  /** The change that made the record before this one; undefined when there was none. */
  readonly follows: Mark | undefined
  /**
   * The latest change of each box, oldest first, so that the last one made this record. By these a box finds out
   * whether a change was made whose answer was lost.
   */
  readonly latest: readonly Mark[]
  /** In order of arrival. */
  readonly requests: readonly RequestRecord[]
  /** By store key: the text that its entry will have. */
  readonly pending: Readonly<Record<string, string>>
}

/** The latest changes of so many boxes are remembered. */
const MARKS = 32
const PHASES = ['waiting', 'reserved', 'held'] as const

/** The record of a new place. */
export function emptyTable(): TableRecord {
  const turn = microseconds()
  return { turn, number: turn, version: turn, follows: undefined, latest: [], requests: [], pending: {} }
}

/** Each change writes this and every box reads it, so it is short. */
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
  life: number,
  beat: string,
  lease: number,
  number: number,
  since: number,
  label?: string,
]
/** An exclusive claim, a shared one, and permits. */
type ClaimText = string | [key: string] | [key: string, permits: number, max: number]

/** A line of JSON, which begins with the box that made the record. The pending entries follow as they are. */
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

/** Reads what {@link encodeTable} wrote. @throws UnreadableError for any other text */
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

/** In the order of texts, the records that this box made are between these two, and no others. */
export function madeBy(by: string): readonly [from: string, to: string] {
  // The dash is the character after the comma. Members would match a pattern against the whole of each record.
  return [`["${by}",`, `["${by}"-`]
}

function markOf([by, count]: MarkText): Mark {
  return { by, count }
}

function encodeRequest(request: RequestRecord, session: number): RequestText {
  const { id, claims, phase, life, beat, lease, number, since, label } = request
  const text: RequestText = [
    id,
    session,
    claims.map(encodeClaim),
    PHASES.indexOf(phase),
    life,
    beat,
    lease,
    number,
    since,
  ]
  if (label !== undefined) text.push(label)
  return text
}

function decodeRequest(text: RequestText, sessions: readonly string[]): RequestRecord {
  const [id, session, claims, phase, life, beat, lease, number, since, label] = text
  return {
    id,
    session: sessions[session]!,
    claims: claims.map(decodeClaim),
    phase: PHASES[phase]!,
    life,
    beat,
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

/** The marks with one more, and without an older one of the same box. */
export function marked(latest: readonly Mark[], mark: Mark): Mark[] {
  return [...latest.filter(({ by }) => by !== mark.by), mark].slice(-MARKS)
}

/**
 * Whether the change with this mark was made to the record `before`, judged by the present one; undefined when that
 * can't be told any more. The change is the latest that its box has tried.
 */
export function wasMade(now: TableRecord, mark: Mark, before: TableRecord): boolean | undefined {
  const own = now.latest.find(({ by }) => by === mark.by)
  if (own) return own.count >= mark.count
  const since = now.turn - before.turn
  // It has the marks of all boxes that ever were, or of all since.
  const isWhole = now.latest.length > 0 && (now.latest.length < MARKS || (since >= 0 && since <= MARKS))
  return isWhole ? false : undefined
}

/** The wall clock. Counters begin there, so that they rise although all data was lost. */
export function microseconds(): number {
  return Date.now() * 1000
}
