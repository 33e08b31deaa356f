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

/** What of one value an operation is about, as the server reads it. */
interface ValueWords {
  readonly role: 1 | 2 | 3 | 4
  readonly name: string
  /** The version that is expected; -1 for any. */
  readonly version: number
  readonly content: string
}

/** An operation in the words of the function `decide` of the schema. */
export class Words {
  readonly kind: number
  /** The row of its first claim, or of the value that is watched; empty where there is none. */
  readonly name: string
  /** The request; for others the session. */
  readonly id: string
  readonly claims: readonly ClaimWords[]
  next = ''
  number = 0
  lease = 0
  life = 0
  hear = 0
  label = ''
  values: readonly ValueWords[] = []
  marks: readonly string[] = []

  constructor(kind: number, name: string, id: string, claims: readonly ClaimWords[] = []) {
    this.kind = kind
    this.name = name
    this.id = id
    this.claims = claims
  }

  /** The rows of locks that it needs. */
  get rows(): readonly string[] {
    return this.claims.map(({ name }) => name)
  }

  /** The rows that it can change. */
  get changed(): readonly string[] {
    const values = this.values.filter(({ role }) => role !== READ)
    return [...this.rows, ...values.map(({ name }) => name)]
  }

  /** Whether it is about one exclusive claim. */
  get isNarrow(): boolean {
    return this.claims.length === 1 && isPlain(this.claims[0]!)
  }

  /**
   * The step in which the server can do it together with others: 1 for what ends grants, 2 for what gives or renews
   * them, 0 for none.
   */
  get step(): 0 | 1 | 2 {
    const { kind, claims, values, marks, life } = this
    if (kind === RELEASE) return claims.every(isPlain) ? 1 : 0
    if (kind === ENQUEUE || kind === RENEW || kind === POLL) return claims.every(isPlain) ? 2 : 0
    if (kind !== COMMIT || values.some(({ role }) => role === DELETED)) return 0
    const isGuarded = claims.length > 0
    return (isGuarded ? life === 1 && claims.every(isPlain) : marks.length === 0) ? 1 : 0
  }
}

/** A claim as the server reads it. The key is there where the name is only its hash. */
interface ClaimWords {
  readonly name: string
  readonly mode: number
  readonly permits: number
  readonly most: number
  readonly key: string
}

const [ENQUEUE, RELEASE, RENEW, POLL, COMMIT] = [1, 2, 3, 5, 12]
const [READ, EXPECTED, WRITTEN, DELETED] = [1, 2, 3, 4] as const

function isPlain({ mode, key }: ClaimWords): boolean {
  return mode === 1 && key === ''
}

const MODES: readonly Claim['mode'][] = ['exclusive', 'shared', 'permits']
/** The server stores a time that is past all others as that of this many milliseconds: some 3,000 years. */
const MAX_DURATION = 1e14
/** How long a watcher is notified without a sign of life: milliseconds. */
export const WATCH_LIFE = 60_000
/** What is no text to PostgreSQL: NUL, and halves of surrogate pairs. */
const NO_TEXT = /[\0\p{Surrogate}]/gu

export function wordsOf(operation: ServerOperation): Words {
  switch (operation.type) {
    case 'enqueue':
      return patient(reading(ofRequest(ENQUEUE, operation.request), operation.read), operation)
    case 'checkIn':
      return patient(reading(ofRequest(POLL, operation.request), operation.read), operation)
    case 'release':
      return ofGrant(RELEASE, operation)
    case 'renew': {
      const words = ofGrant(RENEW, operation)
      words.lease = finite(operation.lease)
      return words
    }
    case 'extendOrYield': {
      const words = patient(ofGrant(4, operation), operation)
      words.next = operation.next.id
      words.label = textOf(operation.next.label)
      return words
    }
    case 'cancel':
      return ofRequest(6, operation.request)
    case 'downgrade':
      return ofGrant(7, operation)
    case 'sweepExpired':
      return ofClaims(8, '', operation.keys.map(exclusiveWords))
    case 'forceRelease': {
      const words = ofClaims(9, '', [exclusiveWords(operation.key)])
      words.number = operation.number
      return words
    }
    case 'revoke':
      return ofClaims(10, operation.session, operation.rows.map(plainWords))
    case 'read':
      return reading(new Words(11, '', ''), operation)
    case 'commit':
      return ofCommit(operation)
    case 'watch':
    case 'unwatch': {
      const kind = operation.type === 'watch' ? 13 : 14
      const words = new Words(kind, rowName('value', operation.key), operation.session)
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

function ofRequest(kind: number, { id, claims, label }: LockRequest): Words {
  const words = ofClaims(kind, id, claims.map(claimWords))
  words.label = textOf(label)
  return words
}

function ofGrant(kind: number, { request, number }: Granted): Words {
  const words = ofRequest(kind, request)
  words.number = number
  return words
}

function ofClaims(kind: number, id: string, claims: readonly ClaimWords[]): Words {
  return new Words(kind, claims[0]?.name ?? '', id, claims)
}

function ofCommit(commit: Commit): Words {
  const { guard, record, retention, release } = commit
  const words = guard ? ofGrant(COMMIT, guard) : new Words(COMMIT, '', '')
  words.lease = finite(retention)
  words.life = release ? 1 : 0
  words.marks = record.map(markOf)
  const written = new Map(commit.writes.map(({ key, value }) => [key, value]))
  const versions = new Map(commit.expect.map(({ key, version }) => [key, version]))
  words.values = valueKeys(commit).map(key => {
    const value = written.get(key)
    const role = value !== undefined ? WRITTEN : written.has(key) ? DELETED : EXPECTED
    return { role, name: rowName('value', key), version: versions.get(key) ?? -1, content: value ?? '' }
  })
  return words
}

/** The keys that a commit is about, each once and in the order in which the server reads them. */
export function valueKeys({ expect, writes }: Commit): readonly string[] {
  return [...new Set([...expect, ...writes].map(({ key }) => key))]
}

/** Adds what is read. */
function reading(words: Words, read: ReadSet | undefined): Words {
  if (!read) return words
  words.values = read.keys.map(key => ({
    role: READ,
    name: rowName('value', key),
    version: -1,
    content: '',
  }))
  words.marks = read.ids.map(markOf)
  return words
}

function claimWords(claim: Claim): ClaimWords {
  const name = rowName('lock', claim.key)
  const [permits, most] = claim.mode === 'permits' ? [claim.permits, claim.max] : [0, 0]
  const key = keyOf(name) === undefined ? claim.key : ''
  return { name, mode: MODES.indexOf(claim.mode) + 1, permits, most, key }
}

function plainWords(name: string): ClaimWords {
  return { name, mode: 1, permits: 0, most: 0, key: '' }
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
  return Math.min(milliseconds, MAX_DURATION)
}
