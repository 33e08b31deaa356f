import type { Claim } from '../../engine/claim.js'
import type { SessionInfo } from '../../engine/contract.js'
import type { Request } from '../../engine/lock-table.js'

/** A request with the process that it belongs to. */
export interface OwnedRequest extends Request {
  readonly host: string
  readonly pid: number
}

/** One place in the queue of a key, as its row has it. */
export type Place =
  /** The request itself, in the row of its {@link mainKey}. */
  | { readonly request: OwnedRequest }
  /** A request of which the row of that key has the rest. */
  | { readonly id: string; readonly first: string }

type ClaimData = string | readonly [key: string] | readonly [key: string, permits: number, max: number]
type RequestData = [
  id: string,
  session: string,
  host: string,
  pid: number,
  phase: Request['phase'],
  expires: number,
  lease: number,
  number: number,
  label: string | null,
  since: number,
  claims: readonly ClaimData[],
]
type PlaceData = RequestData | [id: string, first: string]

/**
 * The key whose row has a request for several keys: the first exclusive one, because only that row may be bound to a
 * transaction of the caller's, or else the first. A downgrade does not change it, because all claims are exclusive before
 * one.
 */
export function mainKey(claims: readonly Claim[]): string {
  return (claims.find(({ mode }) => mode === 'exclusive') ?? claims[0]!).key
}

/** Reads the queue of a key from the data of its row. */
export function placesOf(data: string): Place[] {
  if (data === '') return []
  return (JSON.parse(data) as PlaceData[]).map(place =>
    place.length === 2 ? { id: place[0], first: place[1] } : { request: requestOf(place) },
  )
}

/** The data of a row: the queue of its key, empty for none. */
export function queueData(key: string, requests: readonly OwnedRequest[]): string {
  if (requests.length === 0) return ''
  return JSON.stringify(
    requests.map((request): PlaceData => {
      const first = mainKey(request.claims)
      return first === key ? dataOf(request) : [request.id, first]
    }),
  )
}

/** What is no text to functions of PostgreSQL that read JSON: NUL, and halves of surrogate pairs. */
const NO_TEXT = /[\0\p{Surrogate}]/gu

/** The request with the process that it belongs to, and a label that functions of PostgreSQL can read. */
export function owned(request: Request, { host, pid, label }: SessionInfo): OwnedRequest {
  return Object.assign(request, { host, pid, label: (request.label ?? label)?.replaceAll(NO_TEXT, '\ufffd') })
}

function requestOf(data: RequestData): OwnedRequest {
  const [id, session, host, pid, phase, expires, lease, number, label, since, claims] = data
  const more = { label: label ?? undefined, since, claims: claims.map(claimOf) }
  return { id, session, host, pid, phase, expires, lease, number, ...more }
}

function dataOf(request: OwnedRequest): RequestData {
  const { id, session, host, pid, phase, expires, lease, number, label, since, claims } = request
  return [id, session, host, pid, phase, expires, lease, number, label ?? null, since, claims.map(claimData)]
}

function claimOf(data: ClaimData): Claim {
  if (typeof data === 'string') return { key: data, mode: 'exclusive' }
  if (data.length === 1) return { key: data[0], mode: 'shared' }
  return { key: data[0], mode: 'permits', permits: data[1], max: data[2] }
}

function claimData(claim: Claim): ClaimData {
  if (claim.mode === 'exclusive') return claim.key
  return claim.mode === 'shared' ? [claim.key] : [claim.key, claim.permits, claim.max]
}
