import type { Claim } from '../../engine/claim.js'
import {
  entryTtl,
  heartbeatWithin,
  type Commit,
  type Granted,
  type LockRequest,
  type Operation,
  type WaitTerms,
  type ReadSet,
} from '../../engine/contract.js'
import { keyOf, markOf, rowName } from './names.js'

/** What the server does: operations of the contract, and a revoke with the rows in which a session has requests. */
export type ServerOperation =
  | Exclude<Operation, { readonly type: 'inspect' | 'revoke' }>
  | { readonly type: 'revoke'; readonly session: string; readonly rows: readonly string[] }

/** An operation in the words of the function `decide` of the schema. */
export class Words {
  /** Negative where the operation has more. */
  kind: number
  /** The row of its first claim; empty where there is none. */
  readonly name: string
  /** The request; for others the session. */
  readonly id: string
  number = 0
  lease = 0
  life = 0
  hear = 0
  label = ''
  /** What else it has. */
  more: object | undefined
  /** The rows of locks that it needs. */
  readonly rows: readonly string[]

  constructor(kind: number, name: string, id: string, rows: readonly string[], more?: object) {
    this.kind = more ? -kind : kind
    this.name = name
    this.id = id
    this.more = more
    this.rows = rows
  }
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
/** The server stores a time that is past all others as that of this many milliseconds: some 3,000 years. */
const LONGEST = 1e14
/** How long a watcher is notified without a sign of life: milliseconds. */
export const WATCH_LIFE = 60_000
/** What is no text to PostgreSQL: NUL, and halves of surrogate pairs. */
const NO_TEXT = /[\0\p{Surrogate}]/gu

export function wordsOf(operation: ServerOperation): Words {
  switch (operation.type) {
    case 'enqueue':
      return patient(ofRequest(1, operation.request, readWords(operation.read)), operation)
    case 'poll':
      return patient(ofRequest(5, operation.request, readWords(operation.read)), operation)
    case 'release':
      return ofGrant(2, operation)
    case 'renew': {
      const words = ofGrant(3, operation)
      words.lease = finite(operation.lease)
      return words
    }
    case 'extendOrYield': {
      const words = patient(ofGrant(4, operation, { next: operation.next.id }), operation)
      words.label = textOf(operation.next.label)
      return words
    }
    case 'cancel':
      return ofRequest(6, operation.request)
    case 'downgrade':
      return ofGrant(7, operation, { claims: operation.request.claims.map(claimWords) })
    case 'expire':
      return ofClaims(8, '', operation.keys.map(exclusiveWords))
    case 'forceRelease': {
      const words = ofClaims(9, '', [exclusiveWords(operation.key)])
      words.number = operation.number
      return words
    }
    case 'revoke':
      return ofClaims(
        10,
        operation.session,
        operation.rows.map(name => ({ name, mode: 1 })),
      )
    case 'read':
      return new Words(11, '', '', [], readWords(operation))
    case 'commit':
      return ofCommit(operation)
    case 'watch':
    case 'unwatch': {
      const kind = operation.type === 'watch' ? 13 : 14
      const words = new Words(kind, rowName('value', operation.key), operation.session, [])
      words.lease = WATCH_LIFE
      return words
    }
  }
}

/** Whether a value is written, which has to be on the disk before it counts. */
export function isDurable({ type }: ServerOperation): boolean {
  return type === 'commit'
}

/** What PostgreSQL can store of a text; empty for none. */
export function textOf(text: string | undefined): string {
  return text ? text.replaceAll(NO_TEXT, '\ufffd') : ''
}

function ofRequest(kind: number, { id, claims, label }: LockRequest, more?: object): Words {
  const [first] = claims
  const name = rowName('lock', first!.key)
  const isSimple = claims.length === 1 && first!.mode === 'exclusive' && keyOf(name) !== undefined
  const all = isSimple ? undefined : claims.map(claimWords)
  const rows = all ? all.map(its => its.name) : [name]
  const words = new Words(kind, name, id, rows, all ? { claims: all, ...more } : more)
  words.label = textOf(label)
  return words
}

function ofGrant(kind: number, { request, number }: Granted, more?: object): Words {
  const words = ofRequest(kind, request, more)
  words.number = number
  return words
}

function ofClaims(kind: number, id: string, claims: readonly ClaimWords[]): Words {
  return new Words(
    kind,
    '',
    id,
    claims.map(({ name }) => name),
    { claims },
  )
}

function ofCommit({ guard, expect, writes, record, retention, release }: Commit): Words {
  const nameOf = ({ key }: { readonly key: string }): string => rowName('value', key)
  const written = writes.filter(({ value }) => value !== undefined)
  const more = {
    wanted: [...new Set([...expect, ...writes].map(nameOf))],
    expected: expect.map(nameOf),
    versions: expect.map(({ version }) => version),
    written: written.map(nameOf),
    contents: written.map(({ value }) => value),
    deleted: writes.filter(({ value }) => value === undefined).map(nameOf),
    marks: record.map(markOf),
    release,
  }
  const words = guard ? ofGrant(12, guard, more) : new Words(12, '', '', [], more)
  words.lease = finite(retention)
  return words
}

function readWords(read: ReadSet | undefined): object | undefined {
  if (!read) return undefined
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

function exclusiveWords(key: string): ClaimWords {
  return claimWords({ key, mode: 'exclusive' })
}

/** Adds how long a request and its grant last. */
function patient(words: Words, patience: WaitTerms): Words {
  words.lease = finite(patience.lease)
  words.life = patience.wait > 0 ? finite(entryTtl(patience)) : 0
  words.hear = finite(heartbeatWithin(patience))
  return words
}

function finite(milliseconds: number): number {
  return Math.min(milliseconds, LONGEST)
}
