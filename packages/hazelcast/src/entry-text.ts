import type { Claim } from 'signalbox'
import {
  emptyEntry,
  type KeyChange,
  type KeyEntry,
  type KeyLocks,
  type KeyRequest,
  type RecordedIds,
  type SetHome,
  type SetPointer,
} from './key-entry.js'

const PHASES = ['waiting', 'reserved', 'here', 'held'] as const

/** The beginning of each entry. */
const STAMP = '{"stamp":'
/**
 * Neither a JSON string nor an array contains this text, and the text before the value has no other object. So its
 * first occurrence is the one of the entry itself.
 */
const VALUE = ',"value":'

interface EntryText {
  readonly stamp: number
  readonly version: number
  readonly ids: RecordedIds
  readonly lock?: LocksText
}

/** The locks of a key. Every change writes them, so the format is short. */
type LocksText = [
  turn: number,
  number: number,
  marks: [by: string, count: number][],
  sessions: string[],
  requests: RequestText[],
  ended: string[],
  decided: [id: string, number: number, changes: ChangeText[]][],
  /** Present only if sets may wait for the key. */
  isAwaited?: 1,
]
type RequestText = [
  /** Without the session ID, if the request ID begins with that. */
  id: string,
  session: number,
  claim: ClaimText,
  phase: number,
  ttl: number,
  /** The mark, or only its count if the box of the session made it. */
  heartbeat: string | number,
  lease: number,
  number: number,
  since: number,
  label?: string | null,
  set?:
    | string
    | [others: [key: string, claim: ClaimText][], overwritten: [key: string, stamp: number][]]
    | null,
  sign?: number,
]
type ChangeText = [
  key: string,
  ids: [id: string, until: number][],
  version?: number,
  /** JSON in JSON; null for a deletion. */
  value?: string | null,
]
/** An exclusive claim, a shared one, and permits. */
type ClaimText = 0 | 1 | [permits: number, max: number]

/** Encodes an entry as a JSON object, so that programs in other languages can read the value. */
export function encodeKeyEntry({ stamp, version, ids, value, locks }: KeyEntry): string {
  const { turn, number, marks, requests, ended, decided, isAwaited } = locks
  const sessions = new Map<string, number>()
  for (const { session } of requests) if (!sessions.has(session)) sessions.set(session, sessions.size)
  const lock = [
    turn,
    number,
    JSON.stringify(marks.map(({ by, count }) => [by, count])),
    JSON.stringify([...sessions.keys()]),
    `[${requests.map(request => textOfRequest(request, sessions.get(request.session)!)).join()}]`,
    JSON.stringify(ended),
    JSON.stringify(decided.map(each => [each.id, each.number, each.changes.map(encodeChange)])),
    ...(isAwaited ? [1] : []),
  ].join()
  const n = requests.length + decided.length
  const about = `${STAMP}${stamp},"version":${version},"ids":${JSON.stringify(ids)},"n":${n},"lock":[${lock}]`
  return value === undefined ? `${about}}` : `${about}${VALUE}${value}}`
}

/**
 * The cached texts of requests, before and after the place of their session. Most requests of a long queue do not
 * change.
 */
const texts = new WeakMap<KeyRequest, readonly [before: string, after: string]>()

function textOfRequest(request: KeyRequest, session: number): string {
  const known = texts.get(request)
  if (known) return `${known[0]}${session}${known[1]}`
  const [id, , ...rest] = encodeRequest(request, session)
  const [before, after] = [`[${JSON.stringify(id)},`, `,${JSON.stringify(rest).slice(1)}`] as const
  texts.set(request, [before, after])
  return `${before}${session}${after}`
}

/**
 * Decodes the entry of a key, also one of a value that has never had locks.
 * @throws Error for any other text
 */
export function decodeKeyEntry(key: string, text: string): KeyEntry {
  const at = text.indexOf(VALUE)
  const about = JSON.parse(at < 0 ? text : `${text.slice(0, at)}}`) as EntryText
  const { stamp, version, ids, lock } = about
  if (!text.startsWith(STAMP) || !Number.isSafeInteger(stamp) || !Number.isSafeInteger(version))
    throw new TypeError('its stamp or version is missing')
  if (!text.endsWith('}')) throw new TypeError('it is cut off')
  if (!Array.isArray(ids)) throw new TypeError('its ids are missing')
  const value = at < 0 ? undefined : text.slice(at + VALUE.length, -1)
  return { stamp, version, ids, value, locks: lock ? decodeLocks(key, lock) : emptyEntry().locks }
}

function decodeLocks(
  key: string,
  [turn, number, marks, sessions, requests, ended, decided, isAwaited]: LocksText,
): KeyLocks {
  if (!Number.isSafeInteger(turn) || !Number.isSafeInteger(number))
    throw new TypeError('its turn or number is missing')
  return {
    turn,
    number,
    marks: marks.map(([by, count]) => ({ by, count })),
    requests: requests.map(request => decodeRequest(key, request, sessions)),
    ended,
    decided: decided.map(([id, last, changes]) => ({ id, number: last, changes: changes.map(decodeChange) })),
    isAwaited: isAwaited === 1,
  }
}

function encodeRequest(request: KeyRequest, session: number): RequestText {
  const { id, claim, phase, ttl, heartbeat, lease, number, since, label, set, sign } = request
  const own = `${request.session}.`
  const text: RequestText = [
    id.startsWith(own) ? id.slice(own.length - 1) : id,
    session,
    encodeClaim(claim),
    PHASES.indexOf(phase),
    Math.ceil(ttl),
    isCountOf(heartbeat, own) ? Number(heartbeat.slice(own.length)) : heartbeat,
    lease,
    number,
    Math.floor(since),
  ]
  if (label !== undefined || set || sign !== undefined) text.push(label ?? null)
  if (set) text.push('home' in set ? set.home : encodeHome(set))
  else if (sign !== undefined) text.push(null)
  if (sign !== undefined) text.push(sign)
  return text
}

function encodeHome({ others, overwritten }: SetHome): Exclude<RequestText[10], undefined | null | string> {
  return [
    others.map(claim => [claim.key, encodeClaim(claim)]),
    overwritten.map(([key, stamp]) => [key, stamp]),
  ]
}

function decodeRequest(key: string, text: RequestText, sessions: readonly string[]): KeyRequest {
  const [id, at, claim, phase, ttl, heartbeat, lease, number, since, label, set, sign] = text
  const session = sessions[at]!
  return {
    id: id.startsWith('.') ? `${session}${id}` : id,
    session,
    claim: decodeClaim(key, claim),
    phase: PHASES[phase]!,
    ttl,
    heartbeat: typeof heartbeat === 'number' ? `${session}.${heartbeat}` : heartbeat,
    lease,
    number,
    since,
    label: label ?? undefined,
    set: set === undefined || set === null ? undefined : decodeSet(set),
    sign,
  }
}

function decodeSet(text: NonNullable<RequestText[10]>): SetHome | SetPointer {
  if (typeof text === 'string') return { home: text }
  const [others, overwritten] = text
  return { others: others.map(([key, claim]) => decodeClaim(key, claim)), overwritten }
}

function encodeChange({ key, ids, write }: KeyChange): ChangeText {
  const text: ChangeText = [key, ids.map(([id, until]) => [id, until])]
  if (write) text.push(write.version, write.value ?? null)
  return text
}

function decodeChange([key, ids, version, value]: ChangeText): KeyChange {
  return { key, ids, write: version === undefined ? undefined : { version, value: value ?? undefined } }
}

function encodeClaim(claim: Claim): ClaimText {
  switch (claim.mode) {
    case 'exclusive':
      return 0
    case 'shared':
      return 1
    case 'permits':
      return [claim.permits, claim.max]
  }
}

function decodeClaim(key: string, text: ClaimText): Claim {
  if (text === 0) return { key, mode: 'exclusive' }
  if (text === 1) return { key, mode: 'shared' }
  const [permits, max] = text
  return { key, mode: 'permits', permits, max }
}

/** Whether a mark belongs to the box with this prefix, so that its count identifies it. */
function isCountOf(mark: string, prefix: string): boolean {
  return mark.startsWith(prefix) && /^[1-9]\d{0,14}$/.test(mark.slice(prefix.length))
}
