import type { Claim } from '../../src/engine/claim.js'
import type { LockOperation, RequestReport } from '../../src/engine/contract.js'
import type { MemoryState } from '../../src/engine/kit/memory-state.js'

/** A request as an engine stores it. */
export interface StoredRequest {
  readonly id: string
  readonly phase: RequestReport['phase']
  /** When it expires without a sign of its session, in milliseconds. */
  readonly expires: number
  /** Time of the last sign of its session; undefined unless it is a waiter that signs cover. */
  readonly seen: number | undefined
  /** Undefined if the engine stores none, because nothing depends on it. */
  readonly lease: number | undefined
  readonly number: number
  readonly since: number
  readonly label: string | undefined
  /** In the order of their keys. */
  readonly claims: readonly Claim[]
}

/** The locks that an engine stores. */
export interface StoredTable {
  readonly requests: ReadonlyMap<string, StoredRequest>
  /** The IDs of the requests for each key, in order of arrival. */
  readonly queues: ReadonlyMap<string, readonly string[]>
}

/** A hint that an operation has sent. */
export interface SentHint {
  readonly session: string
  readonly type: 'wake' | 'lost' | 'contended'
  readonly id: string
}

/** Reads the table of an engine that keeps it in variables. */
export function storedIn(state: MemoryState): StoredTable {
  const requests = new Map<string, StoredRequest>()
  const queues = new Map<string, string[]>()
  for (const request of state.requests()) {
    const { id, phase, expires, isCovered, session, lease, number, since, label, claims } = request
    const seen = phase === 'waiting' && isCovered ? state.seen(session) : undefined
    requests.set(id, { id, phase, expires, seen, lease, number, since, label, claims: inOrder(claims) })
  }
  for (const key of state.keys(''))
    queues.set(
      key,
      state.queue(key)!.map(({ request }) => request.id),
    )
  return { requests, queues }
}

/** Returns claims in the order of their keys. */
export function inOrder(claims: readonly Claim[]): readonly Claim[] {
  return claims.toSorted((one, other) => (one.key < other.key ? -1 : 1))
}

/** An operation that a comparison sends to an engine: those of the contract that decide locks. */
export type TableOperation = Exclude<LockOperation, { readonly type: 'inspect' }>
