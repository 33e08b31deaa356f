import type { Claim } from './claim.js'

/** A request in the queue of one key. */
export interface Entry {
  readonly request: Request
  /** The request's claim on the key. */
  claim: Claim
}

/** A request for a claim set, from its enqueue to its release. */
export interface Request {
  readonly id: string
  readonly session: string
  claims: readonly Claim[]
  phase: 'waiting' | 'reserved' | 'held'
  /**
   * When it expires without a check-in or renewal: engine time, in milliseconds. A waiter that has expired, and is not
   * covered by a sign of its session, is *silent*: it blocks no other request, and keeps its place until one is granted
   * past it, at the latest until its lease has passed.
   */
  expires: number
  /** Whether a sign of its session has named it. Then each later sign covers it. */
  isCovered?: boolean
  /** The requested lease, in milliseconds. */
  lease: number
  /** The number of its grant, the upper part of the token; 0 before it is granted. */
  number: number
  readonly label: string | undefined
  /** When it entered the queues: engine time in milliseconds. */
  readonly since: number
}

/**
 * The storage of the table's state, so that the same table runs on variables and in a database transaction. Only the
 * table changes the requests and entries that the storage returns, and it reports each change by `changed`.
 */
export interface TableState {
  /**
   * The entries for a key in order of arrival; undefined if there are none. Most decisions read only the first few, so
   * that must be cheap.
   */
  queue(key: string): Iterable<Entry> | undefined
  /** The last requests that are ahead of this one in the queue of a key, in any order, at most `count`. */
  lastAhead(request: Request, key: string, count: number): readonly Request[]
  request(id: string): Request | undefined
  /** Puts a request at the end of the queue of each of its keys. */
  append(request: Request): void
  /** Puts a request before all others in the queue of each of its keys. For engines with `canSteal`. */
  prepend?(request: Request): void
  /** Removes a request from all its queues. */
  remove(request: Request): void
  /** Called when the table has changed the request, or one of its entries. */
  changed(request: Request): void
  /** The number of the next grant: greater than every earlier one, even after a crash. */
  nextNumber(): number
  requestsOf(session: string): Request[]
  /**
   * Whether an earlier grant of the key is bound to a transaction that has not ended. Until it ends, the key is granted
   * to no other request. Undefined for an engine without such transactions.
   */
  isBound?(key: string): boolean
  /** When the last sign of a session came: engine time, in milliseconds. -Infinity if none has come. */
  seen(session: string): number
  /** A sign of a session has come. */
  see(session: string, now: number): void
  /** All keys with requests that begin with `prefix`. */
  keys(prefix: string): string[]
  /** The process of a session, if it is known. */
  member(
    session: string,
  ): { readonly host: string; readonly pid: number; readonly label: string | undefined } | undefined
}

/** A hint for another session after an operation. */
export interface Effect {
  readonly type: 'wake' | 'lost'
  readonly session: string
  readonly id: string
  /** One of its keys. A sweep of that key serves the request on all of them. */
  readonly key: string
}
