import type { Claim } from '../../engine/claim.js'
import type { Commit, Granted, LockRequest, Operation, WaitTerms, ReadSet } from '../../engine/contract.js'
import { entryTtl } from '../../engine/wait-times.js'
import { keyOf, markOf, rowName } from './names.js'
import { ANY_VERSION, KINDS, MODES, ROLES, STEPS } from './sql-constants.js'

/**
 * The operations that the server executes: those of the contract, and a revoke with the rows that have requests of the
 * session.
 */
export type ServerOperation =
  | Exclude<Operation, { readonly type: 'alive' | 'inspect' | 'list' | 'revoke' }>
  | { readonly type: 'revoke'; readonly session: string; readonly rows: readonly string[] }

/** Maximum duration that is sent to the server, in milliseconds: some 3,000 years. */
export const MAX_DURATION = 1e14

/** The part of an operation that concerns one value. */
interface ValueArguments {
  readonly role: (typeof ROLES)[keyof typeof ROLES]
  readonly name: string
  /** The expected version, or `ANY_VERSION`. */
  readonly version: number
  readonly content: string
}

/** An operation as arguments of the function `decide` of the schema. */
export class CallArguments {
  readonly kind: Kind
  /** The row of the first claim, or of the watched value; empty if it has neither. */
  readonly name: string
  /** The ID of the request, or of the session. */
  readonly id: string
  readonly claims: readonly ClaimArguments[]
  next = ''
  number = 0
  lease = 0
  ttl = 0
  /** Maximum time until the next check-in of a waiter, in milliseconds. */
  readonly heartbeat = MAX_DURATION
  label = ''
  values: readonly ValueArguments[] = []
  marks: readonly string[] = []

  constructor(kind: Kind, name: string, id: string, claims: readonly ClaimArguments[] = []) {
    this.kind = kind
    this.name = name
    this.id = id
    this.claims = claims
  }

  /** The rows of the locks that the operation needs. */
  get rows(): readonly string[] {
    return this.claims.map(({ name }) => name)
  }

  /** The rows that the operation can change. */
  get changed(): readonly string[] {
    const values = this.values.filter(({ role }) => role !== ROLES.read)
    return [...this.rows, ...values.map(({ name }) => name)]
  }

  /** Whether it is an operation on one exclusive claim, without reads, for which the schema has a faster function. */
  get isSimple(): boolean {
    const { kind, claims, values, marks } = this
    return (
      kind <= KINDS.cancel &&
      claims.length === 1 &&
      isPlain(claims[0]!) &&
      values.length === 0 &&
      marks.length === 0
    )
  }

  /** The step in which the server can execute the operation together with others; 0 if it can't. */
  get step(): 0 | (typeof STEPS)[keyof typeof STEPS] {
    const { kind, claims, values, marks, ttl } = this
    if (!claims.every(isPlain)) return 0
    switch (kind) {
      case KINDS.release:
        return STEPS.finish
      case KINDS.enqueue:
      case KINDS.renew:
      case KINDS.checkIn:
        return STEPS.grant
      case KINDS.commit: {
        const canJoin = claims.length > 0 ? ttl === 1 : marks.length === 0
        return canJoin && values.every(({ role }) => role !== ROLES.deleted) ? STEPS.finish : 0
      }
      default:
        return 0
    }
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

type Kind = (typeof KINDS)[keyof typeof KINDS]

function isPlain({ mode, key }: ClaimArguments): boolean {
  return mode === MODES.exclusive && key === ''
}

/** Time after which a watch without renewal ends, in milliseconds. */
export const WATCH_TTL = 60_000
/** Characters that are invalid in a PostgreSQL text: NUL, and halves of surrogate pairs. */
const INVALID_TEXT = /[\0\p{Surrogate}]/gu

export function argumentsOf(operation: ServerOperation): CallArguments {
  switch (operation.type) {
    case 'enqueue':
      return withTerms(reading(ofRequest(KINDS.enqueue, operation.request), operation.read), operation)
    case 'checkIn':
      return withTerms(reading(ofRequest(KINDS.checkIn, operation.request), operation.read), operation)
    case 'release':
      return ofGrant(KINDS.release, operation)
    case 'renew':
      return Object.assign(ofGrant(KINDS.renew, operation), { lease: finite(operation.lease) })
    case 'extendOrYield': {
      const { id, label } = operation.next
      const args = withTerms(ofGrant(KINDS.extendOrYield, operation), operation)
      return Object.assign(args, { next: id, label: textOf(label) })
    }
    case 'cancel':
      return ofRequest(KINDS.cancel, operation.request)
    case 'downgrade':
      return ofGrant(KINDS.downgrade, operation)
    case 'sweepExpired':
      return ofClaims(KINDS.sweepExpired, '', operation.keys.map(exclusiveKey))
    case 'forceRelease': {
      const { key, number } = operation
      return Object.assign(ofClaims(KINDS.forceRelease, '', [exclusiveKey(key)]), { number })
    }
    case 'revoke':
      return ofClaims(KINDS.revoke, operation.session, operation.rows.map(exclusiveRow))
    case 'read':
      return reading(new CallArguments(KINDS.read, '', ''), operation)
    case 'commit':
      return ofCommit(operation)
    case 'watch':
    case 'unwatch': {
      const { type, key, session } = operation
      const args = new CallArguments(KINDS[type], rowName('value', key), session)
      return Object.assign(args, { lease: WATCH_TTL })
    }
  }
}

/** Replaces the characters that PostgreSQL can't store. Returns an empty text for undefined. */
export function textOf(text: string | undefined): string {
  return text ? text.replaceAll(INVALID_TEXT, '\ufffd') : ''
}

function ofRequest(kind: Kind, { id, claims, label }: LockRequest): CallArguments {
  return Object.assign(ofClaims(kind, id, claims.map(claimArguments)), { label: textOf(label) })
}

function ofGrant(kind: Kind, { request, number }: Granted): CallArguments {
  return Object.assign(ofRequest(kind, request), { number })
}

function ofClaims(kind: Kind, id: string, claims: readonly ClaimArguments[]): CallArguments {
  return new CallArguments(kind, claims[0]?.name ?? '', id, claims)
}

function ofCommit(commit: Commit): CallArguments {
  const { guard, record, retention, release } = commit
  const args = guard ? ofGrant(KINDS.commit, guard) : new CallArguments(KINDS.commit, '', '')
  args.lease = finite(retention)
  args.ttl = release ? 1 : 0
  args.marks = record.map(markOf)
  const written = new Map(commit.writes.map(({ key, value }) => [key, value]))
  const versions = new Map(commit.expect.map(({ key, version }) => [key, version]))
  args.values = valueKeys(commit).map(key => {
    const value = written.get(key)
    const role = value !== undefined ? ROLES.written : written.has(key) ? ROLES.deleted : ROLES.expected
    return {
      role,
      name: rowName('value', key),
      version: versions.get(key) ?? ANY_VERSION,
      content: value ?? '',
    }
  })
  return args
}

/** Returns the keys of a commit, each once, in the order in which the server reads them. */
export function valueKeys({ expect, writes }: Commit): readonly string[] {
  return [...new Set([...expect, ...writes].map(({ key }) => key))]
}

/** Adds the keys and IDs to read. */
function reading(args: CallArguments, read: ReadSet | undefined): CallArguments {
  if (!read) return args
  args.values = read.keys.map(key => ({
    role: ROLES.read,
    name: rowName('value', key),
    version: ANY_VERSION,
    content: '',
  }))
  args.marks = read.ids.map(markOf)
  return args
}

function claimArguments(claim: Claim): ClaimArguments {
  const name = rowName('lock', claim.key)
  const [permits, max] = claim.mode === 'permits' ? [claim.permits, claim.max] : [0, 0]
  const key = keyOf(name) === undefined ? claim.key : ''
  return { name, mode: MODES[claim.mode], permits, max, key }
}

function exclusiveRow(name: string): ClaimArguments {
  return { name, mode: MODES.exclusive, permits: 0, max: 0, key: '' }
}

function exclusiveKey(key: string): ClaimArguments {
  return claimArguments({ key, mode: 'exclusive' })
}

/** Adds the lifetimes of a request and its grant. */
function withTerms(args: CallArguments, terms: WaitTerms): CallArguments {
  args.lease = finite(terms.lease)
  args.ttl = terms.wait > 0 ? finite(entryTtl(terms)) : 0
  return args
}

function finite(milliseconds: number): number {
  return Math.min(milliseconds, MAX_DURATION)
}
