import type {
  Commit,
  LockRequest,
  Operation,
  WaitTerms,
  ReadSet,
  SessionInfo,
} from '../../engine/contract.js'
import { entryTtl } from '../../engine/wait-times.js'
import type { Claim } from '../../engine/claim.js'
import type { VoteTerms } from './redis-server.js'
import { heldText } from './held-text.js'
import type { Group, Names } from './names.js'

/** Operations that the server executes: those of the contract, and more for operators and quorums. */
export type ServerOperation = Operation | Take | Raise

/** Takes a request away from its session. */
interface Take {
  readonly type: 'take'
  readonly request: Pick<LockRequest, 'id' | 'claims'>
  /** The number that its grant must have; 0 for any. */
  readonly number: number
}

/** Makes all later numbers greater than `least`. */
interface Raise {
  readonly type: 'raise'
  readonly least: number
}

/** The session that a call is for. */
export interface Caller {
  readonly member: SessionInfo
  /** The details of a grant on one key without a label of its own. */
  readonly memberText: string
}

/** Collects the keys and arguments of one call. An operation is sent with the places of keys among those of the call. */
export class CallArguments {
  readonly #names: Names
  readonly #caller: Caller
  readonly #keys: string[]
  /** Further keys, which the server only reads. */
  readonly #companions: string[] = []
  readonly #operations: object[] = []

  constructor(names: Names, { numbers, queues, requests, signs }: Group, caller: Caller) {
    this.#names = names
    this.#caller = caller
    this.#keys = [numbers, queues, requests, signs]
  }

  /** The number of keys, the keys and the arguments. */
  all(): string[] {
    const { member, memberText } = this.#caller
    const keys = [...this.#keys, ...this.#companions]
    return [String(keys.length), ...keys, member.session, JSON.stringify(this.#operations), memberText]
  }

  /** Adds an operation; with vote terms, as a vote. */
  add(operation: ServerOperation, vote?: VoteTerms): void {
    this.#operations.push(this.#sent(operation, vote))
  }

  /** Lists all fields, because copying objects into others takes several times as long, for each lock. */
  #sent(operation: ServerOperation, vote: VoteTerms | undefined): object {
    const { type } = operation
    switch (type) {
      case 'enqueue':
      case 'checkIn':
      case 'cancel':
      case 'renew':
      case 'release':
      case 'take':
      case 'downgrade':
      case 'extendOrYield': {
        const { id, claims } = operation.request
        const next = type === 'extendOrYield' ? operation.next : undefined
        const fresh = type === 'enqueue' ? operation.request : next
        return {
          type: type === 'enqueue' && operation.steal ? 'steal' : type,
          id,
          claims: this.#claims(claims),
          number: 'number' in operation ? operation.number : undefined,
          next: next?.id,
          lease: 'lease' in operation ? whole(operation.lease) : undefined,
          life: 'wait' in operation ? lifeOf(operation) : undefined,
          details: fresh && this.#details(fresh),
          read: 'read' in operation && operation.read ? this.#read(operation.read) : undefined,
          vote,
        }
      }
      case 'alive':
        return {
          type,
          claims: this.#heldKeys(keysOf(operation)),
          requests: operation.requests.map(({ id }) => id),
        }
      case 'sweepExpired':
        return { type, claims: this.#heldKeys(operation.keys) }
      case 'raise':
        return operation
      case 'inspect':
        return { type }
      case 'read':
        return { type, read: this.#read(operation) }
      case 'commit':
        return this.#commit(operation)
      default:
        throw new TypeError(`${type} is not a single call`)
    }
  }

  #commit({ type, expect, guard, record, release, retention, writes }: Commit): object {
    return {
      type,
      id: guard?.request.id,
      claims: guard && this.#claims(guard.request.claims),
      number: guard?.number,
      release,
      retention: whole(retention),
      keys: this.#values(expect.map(({ key }) => key)),
      versions: expect.map(({ version }) => version),
      writes: writes.map(({ key, value }) => ({ key: this.#place(this.#names.value(key)), value })),
      ids: this.#ids(record),
    }
  }

  /** The details of a held key. Undefined for `memberText`, which a call contains once. */
  #details({ label, claims }: LockRequest): string | undefined {
    return label === undefined && claims.length === 1
      ? undefined
      : heldText(this.#caller.member, label, claims)
  }

  #claims(claims: readonly Claim[]): object[] {
    return claims.map(claim => {
      const { key, mode } = claim
      const held = this.#held(key)
      return mode === 'permits'
        ? { held, key, mode, permits: claim.permits, max: claim.max }
        : { held, key, mode }
    })
  }

  #read({ keys, ids }: ReadSet): object {
    return { keys: this.#values(keys), ids: this.#ids(ids) }
  }

  #values(keys: readonly string[]): number[] {
    return keys.map(key => this.#place(this.#names.value(key)))
  }

  #ids(ids: ReadSet['ids']): object[] {
    return ids.map(({ key, id }) => ({ key: this.#place(this.#names.ids(key)), id }))
  }

  #heldKeys(keys: readonly string[]): object[] {
    return keys.map(key => ({ held: this.#held(key), key }))
  }

  /** Adds a held key and its companions. @returns its place */
  #held(key: string): number {
    for (const name of this.#names.companions(key)) this.#companions.push(name)
    return this.#place(this.#names.held(key))
  }

  /** Adds a key. @returns its place among the keys, from 1 */
  #place(name: string): number {
    return this.#keys.push(name)
  }
}

/** The keys of an operation; none for one that is about all keys. */
export function keysOf(operation: ServerOperation): readonly string[] {
  switch (operation.type) {
    case 'read':
      return [...operation.keys, ...operation.ids.map(({ key }) => key)]
    case 'sweepExpired':
      return operation.keys
    case 'alive':
      return [...new Set(operation.requests.flatMap(({ claims }) => claims.map(({ key }) => key)))]
    case 'commit': {
      const { expect, guard, record, writes } = operation
      return [...expect, ...writes, ...record, ...(guard?.request.claims ?? [])].map(({ key }) => key)
    }
    default:
      return 'request' in operation ? operation.request.claims.map(({ key }) => key) : []
  }
}

/**
 * How long a waiter blocks others without a check-in or a sign, in milliseconds; 0 for a request that does not wait.
 */
function lifeOf(operation: WaitTerms): number {
  return operation.wait > 0 ? whole(entryTtl(operation)) : 0
}

/** Rounds up to the whole milliseconds of Redis, and limits Infinity to the largest exact number. */
function whole(milliseconds: number): number {
  return Math.min(Math.ceil(milliseconds), Number.MAX_SAFE_INTEGER)
}
