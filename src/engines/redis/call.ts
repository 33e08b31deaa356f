import type { Claim } from '../../locks/claim.js'
import {
  entryLife,
  hearWithin,
  type ReadOutcome,
  type ReadSet,
  type RequestReport,
  type Standing,
  type Versioned,
  type Commit,
  type CommitOutcome,
  type Operation,
} from '../engine.js'
import type { Ballot } from './ballot.js'
import type { Reply } from './clients/redis-link.js'
import type { Names } from './names.js'

/** An operation as a call carries it: with the claims of the request that it names, which the script has to be told. */
export interface Carried {
  readonly operation: Operation
  readonly claims: readonly Claim[]
  /** What an operator's release or a look at the queue of a key tells its holder; empty for the session's own words. */
  readonly details: string
  readonly ballot?: Ballot | undefined
}

/** The keys and arguments of one script call, as operations are added to it. */
export class CallArguments {
  readonly keys: string[]
  readonly args: string[]
  readonly #names: Names

  /** @param keys the keys of the group. @param args what comes before the operations. */
  constructor(names: Names, keys: readonly string[], args: readonly string[]) {
    this.#names = names
    this.keys = [...keys]
    this.args = [...args]
  }

  add({ operation, claims, details, ballot }: Carried): void {
    const { args } = this
    if (ballot) args.push('ballot', String(ballot.order), String(ballot.least))
    args.push(operation.type)
    switch (operation.type) {
      case 'enqueue':
        args.push(operation.id, whole(operation.lease))
        this.#patience(operation)
        args.push(details)
        this.#claims(claims)
        return this.#read(operation.read)
      case 'claim':
        args.push(operation.id, whole(operation.lease))
        this.#patience(operation)
        this.#claims(claims)
        return this.#read(operation.read)
      case 'cancel':
        args.push(operation.id)
        return this.#claims(claims)
      case 'renew':
        args.push(operation.id, String(operation.number), whole(operation.lease))
        return this.#claims(claims)
      case 'release':
        args.push(operation.id, String(operation.number))
        return this.#claims(claims)
      case 'pass':
        args.push(operation.id, String(operation.number), operation.next, whole(operation.lease))
        this.#patience(operation)
        args.push(details)
        return this.#claims(claims)
      case 'downgrade':
        args.push(operation.id, String(operation.number), details)
        return this.#claims(claims)
      case 'serve':
        args.push(String(operation.keys.length))
        for (const key of operation.keys) args.push(this.#held(key), key)
        return
      case 'inspect':
        return
      case 'read':
        return this.#read(operation)
      case 'commit':
        return this.#commit(operation, claims)
      default:
        throw new TypeError(`${operation.type} is not one call`)
    }
  }

  /** Adds that a request is taken from whoever has it; a number other than 0 is the one that its grant must have. */
  addTake(id: string, number: number, claims: readonly Claim[]): void {
    this.args.push('take', id, String(number))
    this.#claims(claims)
  }

  /** Adds that all numbers from now on are greater than `least`. */
  addRaise(least: number): void {
    this.args.push('raise', String(least))
  }

  #commit(commit: Commit, claims: readonly Claim[]): void {
    const { args } = this
    const { guard } = commit
    args.push(guard ? '1' : '0')
    if (guard) {
      args.push(guard.id, String(guard.number))
      this.#claims(claims)
    }
    args.push(commit.release ? '1' : '0', whole(commit.retention), String(commit.expect.length))
    for (const { key, version } of commit.expect) {
      args.push(this.#index(this.#names.value(key)), String(version))
    }
    args.push(String(commit.writes.length))
    for (const { key, value } of commit.writes) {
      args.push(this.#index(this.#names.value(key)), value === undefined ? '1' : '0', value ?? '')
    }
    args.push(String(commit.record.length))
    for (const { key, id } of commit.record) args.push(this.#index(this.#names.ids(key)), id)
  }

  #patience(patience: { readonly lease: number; readonly wait: number }): void {
    const waits = patience.wait > 0
    this.args.push(waits ? whole(entryLife(patience)) : '0', whole(hearWithin(patience)))
  }

  #claims(claims: readonly Claim[]): void {
    this.args.push(String(claims.length))
    for (const claim of claims) {
      this.args.push(this.#held(claim.key), claim.key, claim.mode)
      if (claim.mode === 'permits') this.args.push(String(claim.permits), String(claim.max))
    }
  }

  #read(what: ReadSet | undefined): void {
    if (!what) return void this.args.push('-1')
    this.args.push(String(what.keys.length))
    for (const key of what.keys) this.args.push(this.#index(this.#names.value(key)))
    this.args.push(String(what.ids.length))
    for (const { key, id } of what.ids) this.args.push(this.#index(this.#names.ids(key)), id)
  }

  /** The index of a held key; what the script may read beside it is among the keys, too. */
  #held(key: string): string {
    const index = this.#index(this.#names.held(key))
    this.keys.push(...this.#names.beside(key))
    return index
  }

  /** The index, from 1, under which the script finds the key. */
  #index(key: string): string {
    return String(this.keys.push(key))
  }
}

/** An operation that failed alone within its call. */
export class OperationFailure {
  /** @param message what Redis or the script says of it. */
  constructor(readonly message: string) {}
}

/** Why an operation failed alone; undefined when it did not. */
export function failureIn(answer: Reply): OperationFailure | undefined {
  if (typeof answer !== 'object' || answer?.[0] !== 'error') return undefined
  return new OperationFailure(text(answer[1]))
}

/** What the script says of one operation, in the words of the contract. */
export function outcomeOf(operation: Operation, answer: Reply): unknown {
  const failure = failureIn(answer)
  if (failure) return failure
  switch (operation.type) {
    case 'enqueue':
    case 'claim':
      return standing(operation.id, answer)
    case 'pass': {
      const kept = typeof answer === 'object' && answer?.[0] === 'kept' ? Number(answer[1]) : undefined
      if (kept !== undefined) return { state: 'held', id: operation.id, number: kept }
      return standing(operation.next, answer)
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

function standing(id: string, answer: Reply): Standing {
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

/** A value as it is stored: its version, a space, and the JSON text. */
function versioned(stored: string): Versioned {
  const space = stored.indexOf(' ')
  if (space < 0) return ABSENT
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
