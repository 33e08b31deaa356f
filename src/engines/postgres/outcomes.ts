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
import { keyOf } from './names.js'
import { valueKeys, type ServerOperation } from './words.js'

/** A value of JSON. */
export type Json = null | boolean | number | string | readonly Json[]

/** What sessions have to be notified of: a type, a session, a request and the row of one of its keys, or a value. */
export type Told =
  | readonly [type: 'wake' | 'lost', session: string, id: string, name: string]
  | readonly [type: 'changed', session: string, name: string]

/** A call of `decide`, as it answers. */
export type Decided = readonly [
  answers: readonly Json[],
  told: readonly Told[],
  swept: readonly [rows: number, ids: number] | null,
]

/** The name of the row for which an operation was not carried out, because a transaction elsewhere has locked it. */
export function heldRow(answer: Json): string | undefined {
  return Array.isArray(answer) && answer[0] === 'held' && typeof answer[1] === 'string'
    ? answer[1]
    : undefined
}

/** What the server says of one operation, in the words of the contract. */
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
    lookAgain: second as number,
    behind: [],
  } as const
  if (more.length === 0) return queued
  const [session, host, pid, label, age] = more as [string, string, number, string | null, number]
  return { ...queued, holder: { session, host, pid, label: label ?? undefined, age } }
}

/** The outcome of a request that reads. The server says nothing of a read of nothing. */
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
  const [value, version] = list(answer)
  return { value: (value as string | null) ?? undefined, version: version as number }
}

const PHASES = ['waiting', 'reserved', 'held'] as const

/** The requests of an `inspect`. */
export function reportsOf(answer: Json): RequestReport[] {
  return list(answer).map(item => {
    const [name, key, session, host, pid, label, mode, permits, most, phase, number, age, expiresIn] =
      list(item)
    const its = typeof key === 'string' ? key : keyOf(name as string)!
    return {
      key: its,
      session: session as string,
      host: host as string,
      pid: pid as number,
      label: (label as string | null) ?? undefined,
      claim: claimOf(its, mode as number, permits as number, most as number),
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
