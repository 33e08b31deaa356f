import type { Claim } from '../../engine/claim.js'
import type {
  Commit,
  CommitOutcome,
  ReadOutcome,
  RequestReport,
  RequestStatus,
  Versioned,
} from '../../engine/contract.js'
import { timeOfVersion } from '../../engine/kit/time-of-version.js'
import type { ServerOperation } from './call.js'
import type { Reply } from './clients/connection.js'
import { whoIs } from './held-text.js'

/** The failure of one operation in a call. */
export class OperationFailure {
  /**
   * @param message the error of Redis or of the code.
   * @param unreadable the name of the key that another program has written to, if that is the cause.
   */
  constructor(
    readonly message: string,
    readonly unreadable?: string,
  ) {}
}

/** Converts the answer to one operation to its outcome in the contract. */
export function outcomeOf(operation: ServerOperation, answer: Reply): unknown {
  const [state, about] = Array.isArray(answer) ? (answer as readonly Reply[]) : []
  if (state === 'unreadable') return new OperationFailure(state, text(about))
  if (state === 'error') return new OperationFailure(text(about))
  switch (operation.type) {
    case 'enqueue':
    case 'checkIn':
      return statusOf(operation.request.id, answer)
    case 'extendOrYield': {
      if (state !== 'kept') return statusOf(operation.next.id, answer)
      const [, number, alone] = list(answer)
      return { state: 'held', id: operation.request.id, number: Number(number), isUncontended: alone === 1 }
    }
    case 'alive':
      return { next: delay(list(answer)[1]), due: list(list(answer)[2]!).map(text) }
    case 'renew':
    case 'release':
    case 'downgrade':
    case 'take':
      return answer === 1
    case 'inspect':
      return reportsOf(answer)
    case 'read':
      return readOutcome(list(answer)[1]!)
    case 'commit':
      return commitOutcome(operation, list(answer))
    default:
      return undefined
  }
}

/** A request as the code reports it. */
export interface ServerReport extends Omit<RequestReport, 'session' | 'host' | 'pid' | 'label'> {
  readonly id: string
  readonly details: string
  /** Its place in the queue: lower texts come first. */
  readonly order: string
}

/** Parses the recorded requests, in order of arrival. */
export function reportsOf(answer: Reply): ServerReport[] {
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

function statusOf(id: string, answer: Reply): RequestStatus {
  if (typeof answer === 'number') return { state: 'held', id, number: answer }
  const [state, first, second, holder, details, age] = list(answer)
  switch (state) {
    case 'held':
      return { state, id, number: Number(first), read: readOutcome(second!) }
    case 'queued': {
      const queued = { state, id, place: Number(first), checkInAfter: delay(second), sessionsAhead: [] }
      if (holder === undefined) return queued
      return { ...queued, holder: { ...whoIs(text(holder), text(details)), age: Number(age) } }
    }
    case 'mismatch':
      return { state, key: text(first), max: Number(second) }
    case 'busy':
    case 'gone':
      return { state }
    default:
      throw new TypeError(`the server answered ${JSON.stringify(answer)}`)
  }
}

/** Parses milliseconds; a negative number stands for Infinity. */
function delay(reply: Reply | undefined): number {
  return Number(reply) < 0 ? Infinity : Number(reply)
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
/** Stands for a text that another program has written: not JSON, with a version that no value has. */
const UNREADABLE: Versioned = { value: 'not written by Signalbox', version: -1 }

/** Parses a stored value: its version, a space, and the JSON text. */
function versioned(stored: string): Versioned {
  if (stored === '') return ABSENT
  const space = stored.indexOf(' ')
  if (space < 0) return UNREADABLE
  const version = Number(stored.slice(0, space))
  return { value: stored.slice(space + 1), version, changed: timeOfVersion(version) }
}

function text(reply: Reply | undefined): string {
  return typeof reply === 'string' ? reply : String(reply ?? '')
}

function list(reply: Reply): readonly Reply[] {
  if (!Array.isArray(reply)) throw new TypeError(`the server answered ${JSON.stringify(reply)}`)
  return reply as readonly Reply[]
}
