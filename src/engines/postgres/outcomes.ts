import type { Claim } from '../../engine/claim.js'
import type {
  Commit,
  CommitOutcome,
  ReadOutcome,
  ReadSet,
  RequestReport,
  RequestStatus,
  Versioned,
} from '../../engine/contract.js'
import { timeOfVersion } from '../../engine/kit/time-of-version.js'
import { keyOf } from './names.js'
import { MAX_DURATION, valueKeys, type ServerOperation } from './call-arguments.js'

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[]

/**
 * A notice for a session: that a request was reserved or lost, with the row of its first key, or that a value has
 * changed.
 */
export type Notice =
  | readonly [type: 'wake' | 'lost', session: string, id: string, name: string]
  | readonly [type: 'changed', session: string, name: string]

/** The reply of `decide`. */
export type Decided = readonly [
  answers: readonly Json[],
  notices: readonly Notice[],
  swept: readonly [rows: number, ids: number] | null,
]

/** Returns the row that made an operation fail because another transaction has locked it; undefined if none did. */
export function lockedRow(answer: Json): string | undefined {
  return Array.isArray(answer) && answer[0] === 'held' && typeof answer[1] === 'string'
    ? answer[1]
    : undefined
}

/** Decodes the reply to an operation into the outcome of the contract. */
export function outcomeOf(operation: ServerOperation, answer: Json): unknown {
  switch (operation.type) {
    case 'enqueue':
    case 'checkIn':
      return reading(operation.read, statusOf(operation.request.id, operation.request.claims, answer))
    case 'extendOrYield': {
      const [state, number] = list(answer)
      if (state === 'kept') return { state: 'held', id: operation.request.id, number }
      return statusOf(operation.next.id, operation.next.claims, answer)
    }
    case 'renew':
    case 'release':
    case 'downgrade':
    case 'forceRelease':
      return answer === 1
    case 'revoke':
      return answer
    case 'read':
      return readOutcome(answer)
    case 'commit':
      return commitOutcome(operation, list(answer))
    default:
      return undefined
  }
}

function statusOf(id: string, claims: readonly Claim[], answer: Json): RequestStatus {
  if (typeof answer === 'number') return { state: 'held', id, number: answer }
  if (answer === 'busy' || answer === 'gone') return { state: answer }
  const [state, first, second, ...more] = list(answer)
  if (state === 'held') return { state, id, number: first as number, read: readOutcome(second!) }
  if (state === 'mismatch') return { state, key: claims[(first as number) - 1]!.key, max: second as number }
  const queued = {
    state: 'queued',
    id,
    place: first as number,
    checkInAfter: (second as number) < MAX_DURATION ? (second as number) : Infinity,
    sessionsAhead: [],
  } as const
  if (more.length === 0) return queued
  const [session, host, pid, label, age] = more as [string, string, number, string | null, number]
  return { ...queued, holder: { session, host, pid, label: label ?? undefined, age } }
}

/** Adds the outcome of an empty read, which the server does not send. */
function reading(read: ReadSet | undefined, status: RequestStatus): RequestStatus {
  return read && status.state === 'held' ? { read: { values: [], seen: [] }, ...status } : status
}

function commitOutcome(commit: Commit, [state, first, second]: readonly Json[]): CommitOutcome {
  const { expect, writes, record } = commit
  switch (state) {
    case 'committed': {
      const values = new Map(writes.map(({ key, value }) => [key, value]))
      const written = valueKeys(commit).filter(key => values.get(key) !== undefined)
      const versions = new Map(list(first!).map((version, index) => [written[index]!, version as number]))
      return { state, versions: writes.map(({ key }) => versions.get(key) ?? 0) }
    }
    case 'conflict':
      return { state, key: expect[(first as number) - 1]!.key, found: versioned(second!) }
    case 'repeated':
      return { state, ...record[(first as number) - 1]! }
    default:
      return { state: 'lost' }
  }
}

function readOutcome(answer: Json): ReadOutcome {
  const [values, seen] = list(answer)
  return { values: list(values!).map(versioned), seen: list(seen!).map(found => found === true) }
}

function versioned(answer: Json): Versioned {
  const [value, version] = list(answer) as [string | null, number]
  return value === null ? { value: undefined, version } : { value, version, changed: timeOfVersion(version) }
}

const PHASES = ['waiting', 'reserved', 'held'] as const

/** Decodes the reply to an `inspect`. */
export function reportsOf(answer: Json): RequestReport[] {
  return list(answer).map(item => {
    const [name, key, session, host, pid, label, mode, permits, max, phase, number, age, expiresIn] =
      list(item)
    const its = typeof key === 'string' ? key : keyOf(name as string)!
    return {
      key: its,
      session: session as string,
      host: host as string,
      pid: pid as number,
      label: (label as string | null) ?? undefined,
      claim: claimOf(its, mode as number, permits as number, max as number),
      phase: PHASES[phase as number]!,
      number: number as number,
      age: age as number,
      expiresIn: expiresIn as number,
    }
  })
}

function claimOf(key: string, mode: number, permits: number, max: number): Claim {
  if (mode === 3) return { key, mode: 'permits', permits, max }
  return { key, mode: mode === 2 ? 'shared' : 'exclusive' }
}

function list(json: Json): readonly Json[] {
  if (!Array.isArray(json)) return []
  return json as readonly Json[]
}
