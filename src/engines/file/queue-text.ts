import type { Claim } from '../../engine/claim.js'
import type { Entry, Request } from '../../engine/lock-table.js'
import { readable } from './readable.js'

/** A request with its place among all requests: earlier ones have smaller tickets. */
export interface TicketedRequest extends Request {
  readonly ticket: number
}

/** An entry of such a request. */
export interface TicketedEntry extends Entry {
  readonly request: TicketedRequest
}

/** A request for one key. */
export interface NarrowRequest extends TicketedRequest {
  /** Its entry as it is stored; undefined once it has changed. */
  text: string | undefined
}

/** The entry of such a request. */
export interface NarrowEntry extends TicketedEntry {
  readonly request: NarrowRequest
}

/** A claim without its key: `1` exclusive, `0` shared, or permits of a maximum. */
type ClaimText = 0 | 1 | readonly [permits: number, max: number]

/** A request for one key as it is stored in the queue of that key. */
type EntryText = readonly [
  ticket: number,
  claim: ClaimText,
  id: string,
  session: string,
  phase: number,
  expires: number,
  lease: number,
  number: number,
  label: string | null,
  since: number,
]

/** The phases, which are stored as their index in this list. `covered` is a waiter that a sign of life has listed. */
const PHASES = ['waiting', 'reserved', 'held', 'covered'] as const

/** The phase of a request as it is stored. */
export type StoredPhase = (typeof PHASES)[number]

/** Returns the phase of a request as it is stored. */
export function storedPhase({ phase, isCovered }: Request): StoredPhase {
  return phase === 'waiting' && isCovered ? 'covered' : phase
}

/** Returns the fields of a request for a stored phase. */
export function phaseOf(stored: StoredPhase): Pick<Request, 'phase' | 'isCovered'> {
  return stored === 'covered' ? { phase: 'waiting', isCovered: true } : { phase: stored, isCovered: false }
}

/** Separates the entries. The JSON of an entry has no line breaks. */
const SEPARATOR = ',\n'

/** Returns the JSON of requests for one key. Reuses the text of unchanged ones. */
export function queueText(queue: readonly NarrowEntry[]): string {
  return `[${queue.map(entry => (entry.request.text ??= entryText(entry))).join(SEPARATOR)}]`
}

/**
 * Parses the requests for this key.
 * @param known entries of an earlier text. Unchanged ones are used again.
 */
export function queueOf(key: string, text: string, known: readonly NarrowEntry[] = []): NarrowEntry[] {
  return readable('queues', 'key', key, () => {
    if (!text.startsWith('[') || !text.endsWith(']')) throw new SyntaxError('a queue must be a JSON array')
    return text
      .slice(1, -1)
      .split(SEPARATOR)
      .flatMap(each => known.find(entry => entry.request.text === each) ?? entriesOf(key, each))
  })
}

/** Parses a request of a tail. */
export function entryOf(key: string, id: string, text: string): NarrowEntry {
  return readable('tails', 'id', id, () => {
    const [entry] = entriesOf(key, text)
    if (!entry) throw new SyntaxError('a request must be a JSON array')
    return entry
  })
}

/** Returns the JSON of a request for one key. */
export function entryText({ request, claim }: TicketedEntry): string {
  const { ticket, id, session, expires, lease, number, label, since } = request
  const phase = PHASES.indexOf(storedPhase(request))
  const stored: EntryText = [
    ticket,
    claimText(claim),
    id,
    session,
    phase,
    expires,
    lease,
    number,
    label ?? null,
    since,
  ]
  return JSON.stringify(stored)
}

/** Parses an entry, or all entries of a queue that was written without line breaks. */
function entriesOf(key: string, text: string): NarrowEntry[] {
  return (JSON.parse(`[${text}]`) as EntryText[]).map((entry, _, { length }) => {
    const [ticket, claimed, id, session, phase, expires, lease, number, label, since] = entry
    const claim = claimOf(key, claimed)
    const state = { ...phaseOf(PHASES[phase]!), expires, lease, number }
    const stored = { label: label ?? undefined, since, text: length === 1 ? text : undefined }
    return { request: { ticket, id, session, claims: [claim], ...state, ...stored }, claim }
  })
}

/** Returns the JSON of the claims of a request for several keys. */
export function claimsText(claims: readonly Claim[]): string {
  return JSON.stringify(claims.map(claim => [claim.key, claimText(claim)]))
}

/** Parses the claims of a request for several keys. @param id of the request */
export function claimsOf(id: string, text: string): Claim[] {
  return readable('requests', 'id', id, () =>
    (JSON.parse(text) as [string, ClaimText][]).map(([key, claim]) => claimOf(key, claim)),
  )
}

function claimText(claim: Claim): ClaimText {
  if (claim.mode === 'permits') return [claim.permits, claim.max]
  return claim.mode === 'exclusive' ? 1 : 0
}

function claimOf(key: string, text: ClaimText): Claim {
  if (typeof text !== 'number') return { key, mode: 'permits', permits: text[0], max: text[1] }
  return { key, mode: text === 1 ? 'exclusive' : 'shared' }
}
