import type { Claim } from '../../engine/claim.js'
import {
  entryLife,
  hearWithin,
  type ReadOutcome,
  type ReadSet,
  type RequestReport,
  type RequestStatus,
  type Versioned,
  type Commit,
  type CommitOutcome,
  type LockRequest,
  type Operation,
  type Patience,
  type SessionInfo,
} from '../../engine/contract.js'
import type { Ballot } from './ballot.js'
import type { Reply } from './clients/connection.js'
import { heldText } from './held-text.js'
import type { Group, Names } from './names.js'

/** An operation of so many words at the most travels as they are; all else as one text. */
const MOST_WORDS = 16
/** Fewer of them would be taken for such a text. */
const LEAST_WORDS = 3

/** The session that a call is for. */
export interface Caller {
  readonly member: SessionInfo
  /** The details of a grant on one key without a label of its own. */
  readonly memberText: string
}

/** The keys and arguments of one script call, as operations are added to it. */
export class CallArguments {
  readonly #names: Names
  readonly #caller: Caller
  readonly #session: string
  readonly #isAlone: boolean
  readonly #keys: string[]
  /** What the script may read beside the keys that it is told of. */
  readonly #beside: string[] = []
  readonly #words: (string | number)[] = []
  /** Whether the operation that is added is told in the short form, see {@link tableScript}. */
  #isShort = false

  /**
   * @param count how many operations are going to be added.
   */
  constructor(names: Names, { numbers, queues, requests }: Group, caller: Caller, count: number) {
    this.#isAlone = count === 1
    this.#names = names
    this.#caller = caller
    this.#session = caller.member.session
    this.#keys = [numbers, queues, requests]
  }

  /** The call as a command. @param script its text, or its hash for `EVALSHA`. */
  command(name: 'EVAL' | 'EVALSHA', script: string): string[] {
    const words = this.#words
    const command = [name, script, String(this.#keys.length + this.#beside.length)]
    for (const key of this.#keys) command.push(key)
    for (const key of this.#beside) command.push(key)
    command.push(this.#session)
    if (this.#isAlone && words.length >= LEAST_WORDS && words.length <= MOST_WORDS)
      for (const word of words) command.push(String(word))
    else command.push(JSON.stringify(words), this.#caller.memberText)
    return command
  }

  add(operation: Operation, ballot?: Ballot): void {
    const words = this.#words
    if (ballot) words.push('ballot', String(ballot.order), String(ballot.least))
    this.#isShort = this.#canBeShort(operation)
    words.push(this.#isShort ? `.${operation.type}` : operation.type)
    switch (operation.type) {
      case 'enqueue':
        words.push(this.#id(operation.request), whole(operation.lease), patience(operation))
        words.push(this.#details(operation.request))
        this.#claims(operation.request.claims)
        return this.#read(operation.read)
      case 'poll':
        words.push(this.#id(operation.request), whole(operation.lease), patience(operation))
        this.#claims(operation.request.claims)
        return this.#read(operation.read)
      case 'cancel':
        words.push(this.#id(operation.request))
        return this.#claims(operation.request.claims)
      case 'renew':
        words.push(this.#id(operation.request), String(operation.number), whole(operation.lease))
        return this.#claims(operation.request.claims)
      case 'release':
        words.push(this.#id(operation.request), String(operation.number))
        return this.#claims(operation.request.claims)
      case 'extendOrYield':
        words.push(this.#id(operation.request), String(operation.number))
        words.push(this.#id(operation.next), whole(operation.lease), patience(operation))
        words.push(this.#details(operation.next))
        return this.#claims(operation.request.claims)
      case 'downgrade':
        words.push(this.#id(operation.request), String(operation.number), this.#details(operation.request))
        return this.#claims(operation.request.claims)
      case 'expire':
        words.push(operation.keys.length)
        for (const key of operation.keys) {
          this.#held(key)
          words.push(key)
        }
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

  /** Adds that a request is taken from its session; a number other than 0 is the one that its grant must have. */
  addTake(id: string, number: number, claims: readonly Claim[]): void {
    this.#isShort = false
    this.#words.push('take', id, String(number))
    this.#claims(claims)
  }

  /** Adds that all numbers from now on are greater than `least`. */
  addRaise(least: number): void {
    this.#words.push('raise', String(least))
  }

  #commit(commit: Commit): void {
    const words = this.#words
    const { guard } = commit
    words.push(guard ? '1' : '0')
    if (guard) {
      words.push(guard.request.id, String(guard.number))
      this.#claims(guard.request.claims)
    }
    words.push(commit.release ? '1' : '0', whole(commit.retention), commit.expect.length)
    for (const { key, version } of commit.expect) {
      this.#keys.push(this.#names.value(key))
      words.push(String(version))
    }
    words.push(commit.writes.length)
    for (const { key, value } of commit.writes) {
      this.#keys.push(this.#names.value(key))
      words.push(value === undefined ? '1' : '0', value ?? '')
    }
    words.push(commit.record.length)
    for (const { key, id } of commit.record) {
      this.#keys.push(this.#names.ids(key))
      words.push(id)
    }
  }

  #canBeShort(operation: Operation): boolean {
    if (!('request' in operation)) return false
    const { claims, id } = operation.request
    if (claims.length !== 1 || claims[0]!.mode !== 'exclusive' || !this.#isOwn(id)) return false
    switch (operation.type) {
      case 'enqueue':
      case 'poll':
        return operation.read === undefined
      case 'extendOrYield':
        return this.#isOwn(operation.next.id)
      default:
        return true
    }
  }

  #isOwn(id: string): boolean {
    return id[this.#session.length] === '.' && id.startsWith(this.#session)
  }

  #id({ id }: LockRequest): string {
    return this.#isShort ? id.slice(this.#session.length + 1) : id
  }

  /** What a held key tells of its holder. Empty in a call of several for the member's text, which is told once. */
  #details({ label, claims }: LockRequest): string {
    const { member, memberText } = this.#caller
    if (label !== undefined || claims.length > 1) return heldText(member, label, claims)
    return this.#isAlone ? memberText : ''
  }

  #claims(claims: readonly Claim[]): void {
    if (this.#isShort) return this.#held(claims[0]!.key)
    this.#words.push(claims.length)
    for (const claim of claims) {
      this.#held(claim.key)
      this.#words.push(claim.key, claim.mode)
      if (claim.mode === 'permits') this.#words.push(claim.permits, claim.max)
    }
  }

  #read(what: ReadSet | undefined): void {
    if (this.#isShort) return
    if (!what) return void this.#words.push(-1)
    this.#words.push(what.keys.length)
    for (const key of what.keys) this.#keys.push(this.#names.value(key))
    this.#words.push(what.ids.length)
    for (const { key, id } of what.ids) {
      this.#keys.push(this.#names.ids(key))
      this.#words.push(id)
    }
  }

  /** Names a held key, and what the script may read beside it. */
  #held(key: string): void {
    this.#keys.push(this.#names.held(key))
    for (const name of this.#names.beside(key)) this.#beside.push(name)
  }
}

/** The keys that an operation is about; nothing for one that is about all. */
export function keysOf(operation: Operation): readonly string[] {
  switch (operation.type) {
    case 'read':
      return [...operation.keys, ...operation.ids.map(({ key }) => key)]
    case 'expire':
      return operation.keys
    case 'commit': {
      const { expect, guard, record, writes } = operation
      return [...expect, ...writes, ...record, ...(guard?.request.claims ?? [])].map(({ key }) => key)
    }
    default:
      return 'request' in operation ? operation.request.claims.map(({ key }) => key) : []
  }
}

/** How long the entry of a waiter blocks others, and within what time it has to be heard of. */
function patience(operation: Patience): string {
  const life = operation.wait > 0 ? whole(entryLife(operation)) : '0'
  return `${life} ${whole(hearWithin(operation))}`
}

/** An operation that failed alone within its call. */
export class OperationFailure {
  /**
   * @param message what Redis or the script says of it.
   * @param unreadable the name of the key with something else than a value in the place of one, if that is why.
   */
  constructor(
    readonly message: string,
    readonly unreadable?: string,
  ) {}
}

/** Why an operation failed alone; undefined when it did not. */
export function failureIn(answer: Reply): OperationFailure | undefined {
  if (typeof answer !== 'object') return undefined
  const [state, about] = answer ?? []
  if (state === 'unreadable') return new OperationFailure(state, text(about))
  return state === 'error' ? new OperationFailure(text(about)) : undefined
}

/** What the script says of one operation, in the words of the contract. */
export function outcomeOf(operation: Operation, answer: Reply): unknown {
  const failure = failureIn(answer)
  if (failure) return failure
  switch (operation.type) {
    case 'enqueue':
    case 'poll':
      return standing(operation.request.id, answer)
    case 'extendOrYield': {
      if (typeof answer !== 'object' || answer?.[0] !== 'kept') return standing(operation.next.id, answer)
      return { state: 'held', id: operation.request.id, number: Number(answer[1]), isAlone: answer[2] === 1 }
    }
    case 'renew':
    case 'release':
    case 'downgrade':
      return answer === 1
    case 'read':
      return readOutcome(list(answer)[1]!)
    case 'commit':
      return commitOutcome(operation, list(answer))
    default:
      return undefined
  }
}

/** A request as the script reports it. */
export interface ScriptReport extends Omit<RequestReport, 'session' | 'host' | 'pid' | 'label'> {
  readonly id: string
  readonly details: string
  /** Its place among those who wait: the lesser text comes first. */
  readonly order: string
}

/** The requests that have a record, in order of arrival. */
export function reportsOf(answer: Reply): ScriptReport[] {
  const reports = list(list(answer)[1]!).map(item => {
    const [key, id, details, mode, permits, max, phase, number, age, expiresIn, order] = list(item)
    return {
      key: text(key),
      id: text(id),
      details: text(details),
      claim: claimOf(text(key), text(mode), Number(permits), Number(max)),
      phase: text(phase) as RequestReport['phase'],
      number: Number(number),
      age: Number(age),
      expiresIn: Number(expiresIn),
      order: text(order),
    }
  })
  return reports.sort((one, other) => (one.order < other.order ? -1 : 1))
}

function claimOf(key: string, mode: string, permits: number, max: number): Claim {
  if (mode === 'permits') return { key, mode, permits, max }
  return { key, mode: mode === 'shared' ? 'shared' : 'exclusive' }
}

function standing(id: string, answer: Reply): RequestStatus {
  if (typeof answer === 'number') return { state: 'held', id, number: answer }
  const [state, first, second] = list(answer)
  switch (state) {
    case 'held':
      return { state, id, number: Number(first), read: readOutcome(second!) }
    case 'queued':
      return { state, id, place: Number(first), lookAgain: Number(second), behind: [] }
    case 'mismatch':
      return { state, key: text(first), max: Number(second) }
    case 'busy':
    case 'gone':
      return { state }
    default:
      throw new TypeError(`the script answered ${JSON.stringify(answer)}`)
  }
}

function commitOutcome(commit: Commit, answer: readonly Reply[]): CommitOutcome {
  const [state, first, second] = answer
  switch (state) {
    case 'committed':
      return { state, versions: list(first!).map(Number) }
    case 'conflict':
      return { state, key: commit.expect[Number(first) - 1]!.key, found: versioned(text(second)) }
    case 'repeated':
      return { state, ...commit.record[Number(first) - 1]! }
    default:
      return { state: 'lost' }
  }
}

function readOutcome(answer: Reply): ReadOutcome {
  const [values, seen] = list(answer)
  return {
    values: list(values!).map(value => versioned(text(value))),
    seen: list(seen!).map(found => found === 1),
  }
}

const ABSENT: Versioned = { value: undefined, version: 0 }
/** What another program has put there is no JSON to whoever reads it, and has a version that no value has. */
const UNREADABLE: Versioned = { value: 'not written by Signalbox', version: -1 }

/** A value as it is stored: its version, a space, and the JSON text. */
function versioned(stored: string): Versioned {
  if (stored === '') return ABSENT
  const space = stored.indexOf(' ')
  if (space < 0) return UNREADABLE
  return { version: Number(stored.slice(0, space)), value: stored.slice(space + 1) }
}

/** Redis counts in whole milliseconds; Infinity is as long as its clocks go. */
function whole(milliseconds: number): string {
  return String(Math.min(Math.ceil(milliseconds), Number.MAX_SAFE_INTEGER))
}

function text(reply: Reply | undefined): string {
  return typeof reply === 'string' ? reply : String(reply ?? '')
}

function list(reply: Reply): readonly Reply[] {
  if (!Array.isArray(reply)) throw new TypeError(`the script answered ${JSON.stringify(reply)}`)
  return reply as readonly Reply[]
}
