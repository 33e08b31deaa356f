import type { Claim } from '../../engine/claim.js'
import type { Entry, Request } from '../../engine/table-state.js'
import { readable } from './readable.js'

/** A request with its place among all requests: earlier ones have smaller tickets. */
export interface TicketedRequest extends Request {
  readonly ticket: number
}

/** An entry of such a request. */
export interface TicketedEntry extends Entry {
  readonly request: TicketedRequest
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

/** Returns the JSON of requests for one key. */
export function queueText(queue: readonly TicketedEntry[]): string {
  return JSON.stringify(queue.map(stored))
}

/** Parses the requests for this key. */
export function queueOf(key: string, text: string): TicketedEntry[] {
  return readable('queues', 'key', key, () =>
    (JSON.parse(text) as EntryText[]).map(entry => restored(key, entry)),
  )
}

/** Returns the JSON of a request of a tail. */
export function entryText(entry: TicketedEntry): string {
  return JSON.stringify(stored(entry))
}

/** Parses a request of a tail. */
export function entryOf(key: string, id: string, text: string): TicketedEntry {
  return readable('tails', 'id', id, () => restored(key, JSON.parse(text) as EntryText))
}

function stored({ request, claim }: TicketedEntry): EntryText {
  const { ticket, id, session, expires, lease, number, label = null, since } = request
  const phase = PHASES.indexOf(storedPhase(request))
  return [ticket, claimText(claim), id, session, phase, expires, lease, number, label, since]
}

function restored(key: string, entry: EntryText): TicketedEntry {
  const [ticket, claimed, id, session, phase, expires, lease, number, label, since] = entry
  const claim = claimOf(key, claimed)
  const state = { ...phaseOf(PHASES[phase]!), expires, lease, number, label: label ?? undefined, since }
  return { request: { ticket, id, session, claims: [claim], ...state }, claim }
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
