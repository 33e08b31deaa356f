import {
  entryTtl,
  type Commit,
  type LockRequest,
  type Operation,
  type WaitTerms,
  type ReadSet,
  type SessionInfo,
} from '../../engine/contract.js'
import type { Claim } from '../../engine/claim.js'
import type { Ballot } from './ballot.js'
import { heldText } from './held-text.js'
import type { Group, Names } from './names.js'

/** What the server does: operations of the contract, and what it does for operators and quorums. */
export type ServerOperation = Operation | Take | Raise

/** A request is taken from its session. */
interface Take {
  readonly type: 'take'
  readonly request: Pick<LockRequest, 'id' | 'claims'>
  /** The number that its grant must have; 0 for any. */
  readonly number: number
}

/** All numbers from now on are greater. */
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

/** A claim as the server gets it. Keys are named by their places among those of the call. */
interface SentClaim {
  readonly held: number
  readonly key: string
  readonly mode?: Claim['mode']
  readonly permits?: number
  readonly max?: number
}

/** What is to be read, as the server gets it. */
interface SentRead {
  readonly keys: readonly number[]
  readonly ids: readonly SentId[]
}

interface SentId {
  readonly key: number
  readonly id: string
}

/** The keys and arguments of one call, as operations are added to it. */
export class CallArguments {
  readonly #names: Names
  readonly #caller: Caller
  readonly #keys: string[]
  /** What the server may read in addition to the keys that it gets. */
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

  /** Adds an operation: as a vote, if it has a ballot. */
  add(operation: ServerOperation, ballot?: Ballot): void {
    this.#operations.push(this.#sent(operation, ballot))
  }

  /** Written out, because to copy objects into others takes several times as long, for each lock. */
  #sent(operation: ServerOperation, ballot: Ballot | undefined): object {
    const { type } = operation
    switch (type) {
      case 'enqueue': {
        const { id, claims } = operation.request
        return {
          type: operation.steal ? 'steal' : type,
          id,
          claims: this.#claims(claims),
          lease: whole(operation.lease),
          life: lifeOf(operation),
          details: this.#details(operation.request),
          read: operation.read && this.#read(operation.read),
          ballot,
        }
      }
      case 'checkIn': {
        const { id, claims } = operation.request
        return {
          type,
          id,
          claims: this.#claims(claims),
          lease: whole(operation.lease),
          life: lifeOf(operation),
          read: operation.read && this.#read(operation.read),
          ballot,
        }
      }
      case 'cancel': {
        const { id, claims } = operation.request
        return { type, id, claims: this.#claims(claims) }
      }
      case 'renew':
      case 'release':
      case 'take':
      case 'downgrade': {
        const { request, number } = operation
        const lease = type === 'renew' ? whole(operation.lease) : undefined
        return { type, id: request.id, claims: this.#claims(request.claims), number, lease, ballot }
      }
      case 'extendOrYield': {
        const { request, number, next } = operation
        return {
          type,
          id: request.id,
          claims: this.#claims(request.claims),
          number,
          next: next.id,
          lease: whole(operation.lease),
          life: lifeOf(operation),
          details: this.#details(next),
          ballot,
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
        throw new TypeError(`${type} is not one call`)
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

  /** What a held key says about its holder. Undefined for the member's text, which a call states once. */
  #details({ label, claims }: LockRequest): string | undefined {
    return label === undefined && claims.length === 1
      ? undefined
      : heldText(this.#caller.member, label, claims)
  }

  #claims(claims: readonly Claim[]): SentClaim[] {
    return claims.map(claim => {
      const { key, mode } = claim
      const held = this.#held(key)
      return mode === 'permits'
        ? { held, key, mode, permits: claim.permits, max: claim.max }
        : { held, key, mode }
    })
  }

  #read({ keys, ids }: ReadSet): SentRead {
    return { keys: this.#values(keys), ids: this.#ids(ids) }
  }

  #values(keys: readonly string[]): number[] {
    return keys.map(key => this.#place(this.#names.value(key)))
  }

  #ids(ids: ReadSet['ids']): SentId[] {
    return ids.map(({ key, id }) => ({ key: this.#place(this.#names.ids(key)), id }))
  }

  #heldKeys(keys: readonly string[]): SentClaim[] {
    return keys.map(key => ({ held: this.#held(key), key }))
  }

  /** Names a held key, and what else the server may read with it. @returns its place */
  #held(key: string): number {
    for (const name of this.#names.companions(key)) this.#companions.push(name)
    return this.#place(this.#names.held(key))
  }

  /** Names a key. @returns its place among the keys, from 1 */
  #place(name: string): number {
    return this.#keys.push(name)
  }
}

/** The keys that an operation is about; nothing for one that is about all. */
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

/** How long the entry of a waiter blocks others without a sign of its session; 0 for a request that does not wait. */
function lifeOf(operation: WaitTerms): number {
  return operation.wait > 0 ? whole(entryTtl(operation)) : 0
}

/** Redis counts in whole milliseconds; Infinity is as long as its clocks go. */
function whole(milliseconds: number): number {
  return Math.min(Math.ceil(milliseconds), Number.MAX_SAFE_INTEGER)
}
