import type { Claim } from '../../engine/claim.js'
import type { Entry, Request } from '../../engine/lock-table.js'
import { readable } from './readable.js'

/** A request whose place among all requests is known: those that came before have smaller tickets. */
export interface TicketedRequest extends Request {
  readonly ticket: number
}

/** An entry of such a request. */
export interface TicketedEntry extends Entry {
  readonly request: TicketedRequest
}

/** A claim without its key: `1` exclusive, `0` shared, or permits of a maximum. */
type ClaimText = 0 | 1 | readonly [permits: number, max: number]

/** A request for one key as it stands in the queue of that key. */
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

/** The phases by their place in this list. `covered` is a waiter that a sign of life has named. */
const PHASES = ['waiting', 'reserved', 'held', 'covered'] as const

/** The phase of a request as it is stored. */
export type StoredPhase = (typeof PHASES)[number]

/** Part of a request. */
export function storedPhase({ phase, isCovered }: Request): StoredPhase {
  return phase === 'waiting' && isCovered ? 'covered' : phase
}

/** The part of a request that is stored as its phase. */
export function phaseOf(stored: StoredPhase): Pick<Request, 'phase' | 'isCovered'> {
  return stored === 'covered' ? { phase: 'waiting', isCovered: true } : { phase: stored, isCovered: false }
}

/** The requests that claim one key alone as JSON. */
export function queueText(queue: readonly TicketedEntry[]): string {
  return JSON.stringify(
    queue.map(({ request, claim }): EntryText => {
      const { ticket, id, session, expires, lease, number, label, since } = request
      const phase = PHASES.indexOf(storedPhase(request))
      return [ticket, claimText(claim), id, session, phase, expires, lease, number, label ?? null, since]
    }),
  )
}

/** Reads the requests that claim this key alone. */
export function queueOf(key: string, text: string): TicketedEntry[] {
  return readable('queues', 'key', key, () =>
    (JSON.parse(text) as EntryText[]).map(entry => {
      const [ticket, claimed, id, session, phase, expires, lease, number, label, since] = entry
      const claim = claimOf(key, claimed)
      const state = { ...phaseOf(PHASES[phase]!), expires, lease, number }
      return {
        request: { ticket, id, session, claims: [claim], ...state, label: label ?? undefined, since },
        claim,
      }
    }),
  )
}

/** The claims of a request for several keys as JSON. */
export function claimsText(claims: readonly Claim[]): string {
  return JSON.stringify(claims.map(claim => [claim.key, claimText(claim)]))
}

/** Reads the claims of a request for several keys. @param id of the request */
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
