import type {
  Inspect,
  Listener,
  Operation,
  OutcomeOf,
  RequestReport,
  SessionInfo,
} from '../../engine/contract.js'

/**
 * Makes an enqueue, a check-in or a renewal a vote. The request asks several independent servers, and is granted when
 * enough of them have voted for it.
 */
export interface VoteTerms {
  /** The place of the request in the queues, the same on all servers: a whole number. Lower places are served first. */
  readonly order: number
  /** The minimum number of its grant: a whole number. */
  readonly least: number
}

/** A request as `inspect` shows it, with its ID. */
export interface IdentifiedReport extends RequestReport {
  readonly id: string
  /** Its place in the queue of the key: lower texts come first. */
  readonly order: string
}

/**
 * One of several independent servers on which an engine keeps its locks, such as a quorum. Each server decides as the
 * Redis engine does, except that an operation with {@link VoteTerms} is a vote.
 */
export interface RedisServer {
  /** The server as its URL names it, without user, password and query. */
  readonly name: string
  /** Prefix of all keys and channels in Redis. */
  readonly prefix: string
  /** As `join` of an engine. */
  join(member: SessionInfo, listener: Listener): Promise<void>
  /** As `submit` of an engine. @param vote makes an enqueue, a check-in or a renewal a vote. */
  submit<O extends Operation>(operation: O, vote?: VoteTerms): Promise<OutcomeOf<O>>
  /** Subscribes to hints before any request waits. Rejects as `submit` does. */
  listen(): Promise<void>
  /** Returns the requests for these keys, in order for each key. Rejects as `submit` does. */
  reports(inspect: Inspect): Promise<readonly IdentifiedReport[]>
  /** Makes all numbers from now on greater than `least`. Rejects as `submit` does. */
  raise(least: number): Promise<void>
  /** As `leave` of an engine. */
  leave(): Promise<void>
}
