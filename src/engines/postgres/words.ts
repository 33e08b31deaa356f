import type { Claim } from '../../engine/claim.js'
import {
  entryLife,
  hearWithin,
  type Commit,
  type Granted,
  type LockRequest,
  type Operation,
  type Patience,
  type ReadSet,
} from '../../engine/contract.js'
import { keyOf, markOf, rowName } from './names.js'

/** What the server does: operations of the contract, and a revoke with the rows in which a session has requests. */
export type ServerOperation =
  | Exclude<Operation, { readonly type: 'inspect' | 'revoke' }>
  | { readonly type: 'revoke'; readonly session: string; readonly rows: readonly string[] }

/** An operation in the words of the function `decide` of the schema. */
export interface Words {
  readonly kind: number
  /** The row of its first claim; empty where there is none. */
  readonly name: string
  /** The request; for others the session. */
  readonly id: string
  readonly number: number
  readonly lease: number
  readonly life: number
  readonly hear: number
  readonly label: string
  /** What else it has. The kind is negative then. */
  readonly more?: object
  /** The rows of locks that it needs. */
  readonly rows: readonly string[]
}

/** A claim as the server reads it. */
interface ClaimWords {
  readonly name: string
  readonly mode: number
  readonly permits?: number
  readonly most?: number
  readonly key?: string
}

const MODES: readonly Claim['mode'][] = ['exclusive', 'shared', 'permits']
const NOTHING = {
  name: '',
  id: '',
  number: 0,
  lease: 0,
  life: 0,
  hear: 0,
  label: '',
  rows: [] as readonly string[],
}
/** The server stores a time that is past all others as that of this many milliseconds: some 3,000 years. */
const LONGEST = 1e14
/** How long a watcher is notified without a sign of life: milliseconds. */
export const WATCH_LIFE = 60_000
/** What is no text to PostgreSQL: NUL, and halves of surrogate pairs. */
const NO_TEXT = /[\0\p{Surrogate}]/gu

export function wordsOf(operation: ServerOperation): Words {
  switch (operation.type) {
    case 'enqueue':
      return { ...ofRequest(1, operation.request, readWords(operation.read)), ...patienceWords(operation) }
    case 'poll':
      return { ...ofRequest(5, operation.request, readWords(operation.read)), ...patienceWords(operation) }
    case 'release':
      return ofGrant(2, operation)
    case 'renew':
      return { ...ofGrant(3, operation), lease: finite(operation.lease) }
    case 'extendOrYield': {
      const { next, request, number } = operation
      const words = ofRequest(4, { ...request, label: next.label }, { next: next.id })
      return { ...words, number, ...patienceWords(operation) }
    }
    case 'cancel':
      return ofRequest(6, operation.request)
    case 'downgrade':
      return ofGrant(7, operation, true)
    case 'expire':
      return ofKeys(8, operation.keys)
    case 'forceRelease':
      return { ...ofKeys(9, [operation.key]), number: operation.number }
    case 'revoke': {
      const claims = operation.rows.map((name): ClaimWords => ({ name, mode: 1 }))
      return { ...NOTHING, kind: -10, id: operation.session, more: { claims }, rows: operation.rows }
    }
    case 'read':
      return { ...NOTHING, kind: -11, more: readWords(operation) }
    case 'commit':
      return ofCommit(operation)
    case 'watch':
    case 'unwatch': {
      const kind = operation.type === 'watch' ? 13 : 14
      return {
        ...NOTHING,
        kind,
        name: rowName('value', operation.key),
        id: operation.session,
        lease: WATCH_LIFE,
      }
    }
  }
}

/** Whether a value is written, which has to be on the disk before it counts. */
export function isDurable({ type }: ServerOperation): boolean {
  return type === 'commit'
}

/** What PostgreSQL can store of a text; empty for none. */
export function textOf(text: string | undefined): string {
  return (text ?? '').replaceAll(NO_TEXT, '\ufffd')
}

function ofRequest(kind: number, { id, claims, label }: LockRequest, more: object = {}, all = false): Words {
  const words = claims.map(claimWords)
  const rows = words.map(({ name }) => name)
  const isSimple = !all && words.length === 1 && words[0]!.mode === 1 && words[0]!.key === undefined
  const whole = isSimple ? more : { ...more, claims: words }
  const base = { ...NOTHING, name: rows[0]!, id, label: textOf(label), rows }
  return Object.keys(whole).length === 0 ? { ...base, kind } : { ...base, kind: -kind, more: whole }
}

/** @param all whether all claims are told, also a simple one. */
function ofGrant(kind: number, { request, number }: Granted, all = false): Words {
  return { ...ofRequest(kind, request, {}, all), number }
}

function ofKeys(kind: number, keys: readonly string[]): Words {
  const claims = keys.map(key => claimWords({ key, mode: 'exclusive' }))
  return { ...NOTHING, kind: -kind, more: { claims }, rows: claims.map(({ name }) => name) }
}

function ofCommit({ guard, expect, writes, record, retention, release }: Commit): Words {
  const more = {
    expect: expect.map(({ key, version }) => [rowName('value', key), version]),
    writes: writes.map(({ key, value }) => [rowName('value', key), value ?? null]),
    marks: record.map(markOf),
    release,
  }
  const words = guard ? ofRequest(12, guard.request, more) : { ...NOTHING, kind: -12, more }
  return { ...words, number: guard?.number ?? 0, lease: finite(retention) }
}

function readWords(read: ReadSet | undefined): object {
  if (!read) return {}
  return { read: { names: read.keys.map(key => rowName('value', key)), marks: read.ids.map(markOf) } }
}

function claimWords(claim: Claim): ClaimWords {
  const name = rowName('lock', claim.key)
  return {
    name,
    mode: MODES.indexOf(claim.mode) + 1,
    ...(claim.mode === 'permits' && { permits: claim.permits, most: claim.max }),
    ...(keyOf(name) === undefined && { key: claim.key }),
  }
}

function patienceWords(patience: Patience): Pick<Words, 'lease' | 'life' | 'hear'> {
  return {
    lease: finite(patience.lease),
    life: patience.wait > 0 ? finite(entryLife(patience)) : 0,
    hear: finite(hearWithin(patience)),
  }
}

function finite(milliseconds: number): number {
  return Math.min(milliseconds, LONGEST)
}
