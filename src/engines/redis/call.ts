import {
  entryTtl,
  type Commit,
  type LockRequest,
  type Operation,
  type WaitTerms,
  type ReadSet,
  type SessionInfo,
} from '../../engine/contract.js'
import type { Ballot } from './ballot.js'
import { heldText } from './held-text.js'
import type { Group, Names } from './names.js'

/** What the script does: operations of the contract, and what it does for operators and quorums. */
export type ScriptOperation = Operation | Take | Raise

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

/** The keys and arguments of one call of the table's script, as operations are added to it. */
export class CallArguments {
  readonly #names: Names
  readonly #caller: Caller
  readonly #keys: string[]
  /** What the script may read in addition to the keys that it gets. */
  readonly #companions: string[] = []
  readonly #words: (string | number | boolean)[] = []

  constructor(names: Names, { numbers, queues, requests, signs }: Group, caller: Caller) {
    this.#names = names
    this.#caller = caller
    this.#keys = [numbers, queues, requests, signs]
  }

  /** The number of keys, the keys and the arguments. */
  all(): string[] {
    const { member, memberText } = this.#caller
    const keys = [...this.#keys, ...this.#companions]
    return [String(keys.length), ...keys, member.session, JSON.stringify(this.#words), memberText]
  }

  add(operation: ScriptOperation, ballot?: Ballot): void {
    const words = this.#words
    if (ballot) words.push('ballot', String(ballot.order), String(ballot.least))
    const isSteal = operation.type === 'enqueue' && operation.steal
    words.push(isSteal ? 'steal' : operation.type)
    switch (operation.type) {
      case 'enqueue':
        this.#request(operation.request)
        if (isSteal) {
          words.push(whole(operation.lease), this.#details(operation.request))
          return
        }
        words.push(whole(operation.lease), lifeOf(operation), this.#details(operation.request))
        return this.#readOf(operation)
      case 'checkIn':
        this.#request(operation.request)
        words.push(whole(operation.lease), lifeOf(operation))
        return this.#readOf(operation)
      case 'cancel':
        return this.#request(operation.request)
      case 'renew':
        this.#request(operation.request)
        words.push(String(operation.number), whole(operation.lease))
        return
      case 'release':
      case 'take':
      case 'downgrade':
        this.#request(operation.request)
        words.push(String(operation.number))
        return
      case 'extendOrYield': {
        const { next } = operation
        this.#request(operation.request)
        words.push(String(operation.number), next.id)
        words.push(whole(operation.lease), lifeOf(operation), this.#details(next))
        return
      }
      case 'alive':
        this.#heldKeys(keysOf(operation))
        words.push(operation.requests.length)
        for (const { id } of operation.requests) words.push(id)
        return
      case 'sweepExpired':
        return this.#heldKeys(operation.keys)
      case 'raise':
        words.push(String(operation.least))
        return
      case 'inspect':
        return
      case 'read':
        return this.#read(operation)
      case 'commit':
        return this.#commit(operation)
      default:
        throw new TypeError(`${operation.type} is not one call`)
    }
  }

  #commit({ expect, guard, record, release, retention, writes }: Commit): void {
    const words = this.#words
    words.push(guard !== undefined)
    if (guard) {
      this.#request(guard.request)
      words.push(String(guard.number))
    }
    words.push(release, whole(retention))
    this.#values(expect.map(({ key }) => key))
    for (const { version } of expect) words.push(String(version))
    words.push(writes.length)
    for (const { key, value } of writes) {
      this.#keys.push(this.#names.value(key))
      words.push(value === undefined, value ?? '')
    }
    this.#ids(record)
  }

  /** What a held key says about its holder. Empty for the member's text, which a call states once. */
  #details({ label, claims }: LockRequest): string {
    return label === undefined && claims.length === 1 ? '' : heldText(this.#caller.member, label, claims)
  }

  #request({ id, claims }: Take['request']): void {
    this.#words.push(id, claims.length)
    for (const claim of claims) {
      this.#held(claim.key)
      this.#words.push(claim.key, claim.mode)
      if (claim.mode === 'permits') this.#words.push(claim.permits, claim.max)
    }
  }

  #readOf({ read }: { readonly read?: ReadSet | undefined }): void {
    this.#words.push(read !== undefined)
    if (read) this.#read(read)
  }

  #read({ keys, ids }: ReadSet): void {
    this.#values(keys)
    this.#ids(ids)
  }

  #values(keys: readonly string[]): void {
    this.#words.push(keys.length)
    for (const key of keys) this.#keys.push(this.#names.value(key))
  }

  #ids(ids: ReadSet['ids']): void {
    this.#words.push(ids.length)
    for (const { key, id } of ids) {
      this.#keys.push(this.#names.ids(key))
      this.#words.push(id)
    }
  }

  #heldKeys(keys: readonly string[]): void {
    this.#words.push(keys.length)
    for (const key of keys) {
      this.#held(key)
      this.#words.push(key)
    }
  }

  /** Names a held key, and what else the script may read with it. */
  #held(key: string): void {
    this.#keys.push(this.#names.held(key))
    for (const name of this.#names.companions(key)) this.#companions.push(name)
  }
}

/** The keys that an operation is about; nothing for one that is about all. */
export function keysOf(operation: ScriptOperation): readonly string[] {
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
function lifeOf(operation: WaitTerms): string {
  return operation.wait > 0 ? whole(entryTtl(operation)) : '0'
}

/** Redis counts in whole milliseconds; Infinity is as long as its clocks go. */
function whole(milliseconds: number): string {
  return String(Math.min(Math.ceil(milliseconds), Number.MAX_SAFE_INTEGER))
}
