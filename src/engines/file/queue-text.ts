import type { Claim } from '../../locks/claim.js'
import type { Entry, Request } from '../../locks/table.js'

/** A claim without its key: `1` exclusive, `0` shared, or permits of a maximum. */
type ClaimText = 0 | 1 | readonly [permits: number, max: number]

/** The phases by their place in this list. */
const PHASES = ['waiting', 'reserved', 'held'] as const

/** A request without its claims. */
type RequestText = readonly [
  id: string,
  session: string,
  phase: number,
  expires: number,
  lease: number,
  number: number,
  label: string | null,
  since: number,
]

/** An entry of a queue: the claim and the request where it claims this key only, else the request's id. */
type EntryText = readonly [ClaimText, ...RequestText] | string

/** The queue of a key as JSON. */
export function queueText(queue: readonly Entry[]): string {
  return JSON.stringify(
    queue.map(({ request, claim }): EntryText =>
      request.claims.length === 1 ? [claimText(claim), ...requestFields(request)] : request.id,
    ),
  )
}

/**
 * Reads the queue of a key.
 * @param known gives the request for several keys that has this id.
 */
export function queueOf(key: string, text: string, known: (id: string) => Request): Entry[] {
  return (JSON.parse(text) as EntryText[]).map(entry => {
    if (typeof entry === 'string') {
      const request = known(entry)
      return { request, claim: claimOn(request.claims, key) }
    }
    const [text, ...fields] = entry
    const claim = claimOf(key, text)
    return { request: requestOf(fields, [claim]), claim }
  })
}

/** The claim on a key, among claims sorted by key. */
function claimOn(claims: readonly Claim[], key: string): Claim {
  let low = 0
  for (let high = claims.length - 1; low < high;) {
    const middle = (low + high) >> 1
    if (claims[middle]!.key < key) low = middle + 1
    else high = middle
  }
  return claims[low]!
}

/** A request for several keys as JSON, with its claims. */
export function requestText(request: Request): string {
  const claims = request.claims.map(claim => [claim.key, claimText(claim)])
  return JSON.stringify([requestFields(request), claims])
}

/** Reads a request for several keys. */
export function requestFrom(text: string): Request {
  const [fields, claims] = JSON.parse(text) as [RequestText, [string, ClaimText][]]
  return requestOf(
    fields,
    claims.map(([key, claim]) => claimOf(key, claim)),
  )
}

function requestFields(request: Request): RequestText {
  const { id, session, phase, expires, lease, number, label, since } = request
  return [id, session, PHASES.indexOf(phase), expires, lease, number, label ?? null, since]
}

function requestOf(fields: RequestText, claims: readonly Claim[]): Request {
  const [id, session, phase, expires, lease, number, label, since] = fields
  return {
    id,
    session,
    claims,
    phase: PHASES[phase]!,
    expires,
    lease,
    number,
    label: label ?? undefined,
    since,
  }
}

function claimText(claim: Claim): ClaimText {
  if (claim.mode === 'permits') return [claim.permits, claim.max]
  return claim.mode === 'exclusive' ? 1 : 0
}

function claimOf(key: string, text: ClaimText): Claim {
  if (typeof text !== 'number') return { key, mode: 'permits', permits: text[0], max: text[1] }
  return { key, mode: text === 1 ? 'exclusive' : 'shared' }
}
