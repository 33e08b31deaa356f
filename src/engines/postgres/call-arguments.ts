import type { Claim } from '../../engine/claim.js'
import {
  entryTtl,
  type Commit,
  type Granted,
  type LockRequest,
  type Operation,
  type WaitTerms,
  type ReadSet,
} from '../../engine/contract.js'
import { keyOf, markOf, rowName } from './names.js'

/**
 * What the server executes: operations of the contract, and a revoke with the rows that have requests of the session.
 */
export type ServerOperation =
  | Exclude<Operation, { readonly type: 'alive' | 'inspect' | 'list' | 'revoke' }>
  | { readonly type: 'revoke'; readonly session: string; readonly rows: readonly string[] }

/** The part of an operation that concerns one value. */
interface ValueArguments {
  readonly role: 1 | 2 | 3 | 4
  readonly name: string
  /** The expected version; -1 for any. */
  readonly version: number
  readonly content: string
}

/** An operation as arguments of the function `decide` of the schema. */
export class CallArguments {
  readonly kind: number
  /** The row of its first claim, or of the watched value; empty if it has neither. */
  readonly name: string
  /** The ID of its request, or of the session. */
  readonly id: string
  readonly claims: readonly ClaimArguments[]
  next = ''
  number = 0
  lease = 0
  ttl = 0
  /** Maximum time until the next check-in of a waiter. */
  heartbeat = 0
  label = ''
  values: readonly ValueArguments[] = []
  marks: readonly string[] = []

  constructor(kind: number, name: string, id: string, claims: readonly ClaimArguments[] = []) {
    this.kind = kind
    this.name = name
    this.id = id
    this.claims = claims
  }

  /** The rows of the locks that it needs. */
  get rows(): readonly string[] {
    return this.claims.map(({ name }) => name)
  }

  /** The rows that it can change. */
  get changed(): readonly string[] {
    const values = this.values.filter(({ role }) => role !== READ)
    return [...this.rows, ...values.map(({ name }) => name)]
  }

  /** Whether it is an operation on one exclusive claim, without reads, for which the schema has a faster function. */
  get isSimple(): boolean {
    const { kind, claims, values, marks } = this
    return (
      kind <= 6 && claims.length === 1 && isPlain(claims[0]!) && values.length === 0 && marks.length === 0
    )
  }

  /**
   * The step in which the server can execute it together with others: 1 for releases and commits, 2 for grants and
   * renewals, 0 if it can't.
   */
  get step(): 0 | 1 | 2 {
    const { kind, claims, values, marks, ttl } = this
    if (kind === RELEASE) return claims.every(isPlain) ? 1 : 0
    if (kind === ENQUEUE || kind === RENEW || kind === POLL) return claims.every(isPlain) ? 2 : 0
    if (kind !== COMMIT || values.some(({ role }) => role === DELETED)) return 0
    const isGuarded = claims.length > 0
    return (isGuarded ? ttl === 1 && claims.every(isPlain) : marks.length === 0) ? 1 : 0
  }
}

/** A claim as arguments of the schema's functions. The key is set only if the name has its hash. */
interface ClaimArguments {
  readonly name: string
  readonly mode: number
  readonly permits: number
  readonly max: number
  readonly key: string
}

const [ENQUEUE, RELEASE, RENEW, POLL, COMMIT] = [1, 2, 3, 5, 12]
const [READ, EXPECTED, WRITTEN, DELETED] = [1, 2, 3, 4] as const

function isPlain({ mode, key }: ClaimArguments): boolean {
  return mode === 1 && key === ''
}

const MODES: readonly Claim['mode'][] = ['exclusive', 'shared', 'permits']
/** The server stores a later time as this many milliseconds, some 3,000 years. */
export const MAX_DURATION = 1e14
/** How long a watcher is notified without a renewal, in milliseconds. */
export const WATCH_TTL = 60_000
/** What is invalid in a PostgreSQL text: NUL, and halves of surrogate pairs. */
const INVALID_TEXT = /[\0\p{Surrogate}]/gu

export function argumentsOf(operation: ServerOperation): CallArguments {
  switch (operation.type) {
    case 'enqueue':
      return withTerms(reading(ofRequest(ENQUEUE, operation.request), operation.read), operation)
    case 'checkIn':
      return withTerms(reading(ofRequest(POLL, operation.request), operation.read), operation)
    case 'release':
      return ofGrant(RELEASE, operation)
    case 'renew': {
      const args = ofGrant(RENEW, operation)
      args.lease = finite(operation.lease)
      return args
    }
    case 'extendOrYield': {
      const args = withTerms(ofGrant(4, operation), operation)
      args.next = operation.next.id
      args.label = textOf(operation.next.label)
      return args
    }
    case 'cancel':
      return ofRequest(6, operation.request)
    case 'downgrade':
      return ofGrant(7, operation)
    case 'sweepExpired':
      return ofClaims(8, '', operation.keys.map(exclusiveKey))
    case 'forceRelease': {
      const args = ofClaims(9, '', [exclusiveKey(operation.key)])
      args.number = operation.number
      return args
    }
    case 'revoke':
      return ofClaims(10, operation.session, operation.rows.map(exclusiveRow))
    case 'read':
      return reading(new CallArguments(11, '', ''), operation)
    case 'commit':
      return ofCommit(operation)
    case 'watch':
    case 'unwatch': {
      const kind = operation.type === 'watch' ? 13 : 14
      const args = new CallArguments(kind, rowName('value', operation.key), operation.session)
      args.lease = WATCH_TTL
      return args
    }
  }
}

/** Replaces what PostgreSQL can't store; empty if undefined. */
export function textOf(text: string | undefined): string {
  return text ? text.replaceAll(INVALID_TEXT, '\ufffd') : ''
}

function ofRequest(kind: number, { id, claims, label }: LockRequest): CallArguments {
  const args = ofClaims(kind, id, claims.map(claimArguments))
  args.label = textOf(label)
  return args
}

function ofGrant(kind: number, { request, number }: Granted): CallArguments {
  const args = ofRequest(kind, request)
  args.number = number
  return args
}

function ofClaims(kind: number, id: string, claims: readonly ClaimArguments[]): CallArguments {
  return new CallArguments(kind, claims[0]?.name ?? '', id, claims)
}

function ofCommit(commit: Commit): CallArguments {
  const { guard, record, retention, release } = commit
  const args = guard ? ofGrant(COMMIT, guard) : new CallArguments(COMMIT, '', '')
  args.lease = finite(retention)
  args.ttl = release ? 1 : 0
  args.marks = record.map(markOf)
  const written = new Map(commit.writes.map(({ key, value }) => [key, value]))
  const versions = new Map(commit.expect.map(({ key, version }) => [key, version]))
  args.values = valueKeys(commit).map(key => {
    const value = written.get(key)
    const role = value !== undefined ? WRITTEN : written.has(key) ? DELETED : EXPECTED
    return { role, name: rowName('value', key), version: versions.get(key) ?? -1, content: value ?? '' }
  })
  return args
}

/** The keys of a commit, each once, in the order in which the server reads them. */
export function valueKeys({ expect, writes }: Commit): readonly string[] {
  return [...new Set([...expect, ...writes].map(({ key }) => key))]
}

/** Adds what to read. */
function reading(args: CallArguments, read: ReadSet | undefined): CallArguments {
  if (!read) return args
  args.values = read.keys.map(key => ({
    role: READ,
    name: rowName('value', key),
    version: -1,
    content: '',
  }))
  args.marks = read.ids.map(markOf)
  return args
}

function claimArguments(claim: Claim): ClaimArguments {
  const name = rowName('lock', claim.key)
  const [permits, max] = claim.mode === 'permits' ? [claim.permits, claim.max] : [0, 0]
  const key = keyOf(name) === undefined ? claim.key : ''
  return { name, mode: MODES.indexOf(claim.mode) + 1, permits, max, key }
}

function exclusiveRow(name: string): ClaimArguments {
  return { name, mode: 1, permits: 0, max: 0, key: '' }
}

function exclusiveKey(key: string): ClaimArguments {
  return claimArguments({ key, mode: 'exclusive' })
}

/** Adds how long a request and its grant last. */
function withTerms(args: CallArguments, terms: WaitTerms): CallArguments {
  args.lease = finite(terms.lease)
  args.ttl = terms.wait > 0 ? finite(entryTtl(terms)) : 0
  args.heartbeat = MAX_DURATION
  return args
}

function finite(milliseconds: number): number {
  return Math.min(milliseconds, MAX_DURATION)
}
