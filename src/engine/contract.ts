// Terms:
// - check-in: the operation `checkIn` of a waiter. It keeps the request, and claims keys that are reserved for it.
// - sign of life: the operation `alive` of a box. The waiters that it names are *covered* from then on: each sign of
//   their session keeps them, so they need not check in.
// - heartbeat: a sign of life, or on an engine without signs the regular check-in of a waiter.
// - lease: the time for which a grant lasts without a renewal. Without a check-in or sign, a waiter keeps its place no
//   longer than that.

import type { Claim } from './claim.js'
import type { Guarantees } from '../base/guarantees.js'
import type { KeptLimiter } from './limits/report.js'
import type { ReservePermits, Reserved } from './limits/reservation.js'

/** An answer that an engine in this process gives at once, and others later. */
export type Awaitable<T> = T | Promise<T>

/**
 * A transaction that the caller has begun and will end: a client of `pg`, the `sql` of a transaction of `postgres`, a
 * transaction of PGlite, an `EntityManager` of TypeORM, or an object whose `query` calls the raw query of another
 * package.
 */
export type SqlTransaction =
  | {
      /**
       * Runs a statement in the transaction. Resolves to its rows, or to an object that has them as `rows`.
       * @param text has the parameters `$1`, `$2`, …, each once and in this order, and no other `$` or `?`.
       */
      query(
        text: string,
        values: string[],
      ): PromiseLike<readonly unknown[] | { readonly rows: readonly unknown[] }>
      /** Only a pool has it. */
      readonly totalCount?: never
    }
  | {
      unsafe(text: string, values: string[]): PromiseLike<readonly unknown[]>
      /** Only the `sql` outside of a transaction has it. */
      readonly begin?: never
    }

/** The process that a session belongs to, as `inspect` shows it with holders and waiters. */
export interface SessionInfo {
  /** The session ID: no other box has or had it. */
  readonly session: string
  readonly host: string
  readonly pid: number
  /** The label that the box was opened with. */
  readonly label: string | undefined
}

/** A request for locks, from its enqueue to the end of its grant. Each operation on it contains it. */
export interface LockRequest {
  /** Unique among the requests of all sessions. */
  readonly id: string
  readonly session: string
  readonly claims: readonly Claim[]
  readonly label: string | undefined
}

/** The lease and the wait of a request. */
export interface WaitTerms {
  /** Time for which the grant lasts without a renewal, in milliseconds. */
  readonly lease: number
  /** Maximum time for which the callers still wait for the grant, in milliseconds; Infinity for no limit. */
  readonly wait: number
}

/**
 * Enters the queues of all claimed keys in one step. The request is granted at once if no conflicting request is ahead
 * of it. Without a check-in or sign, a waiting request blocks others for `entryTtl`. With a wait of 0 the request is
 * never queued: the answer is `busy`, and the engine keeps nothing. Repeating the enqueue of a request changes nothing.
 */
export interface Enqueue extends WaitTerms {
  readonly type: 'enqueue'
  readonly request: LockRequest
  /** The values to read in the same step when it is granted. */
  readonly read?: ReadSet | undefined
  /**
   * Grants the request in this step, before all that waits for its keys, and takes the keys from their holders. A
   * reservation waits again. Only for engines with `canSteal`, and for exclusive claims; nothing is read with it.
   */
  readonly steal?: boolean | undefined
}

/**
 * Claims the keys if they are reserved for the request: it is then granted. If it waits, keeps it alive, and drops the
 * expired requests ahead of it. If it is granted already, renews the grant. Safe at any time.
 */
export interface CheckIn extends WaitTerms {
  readonly type: 'checkIn'
  readonly request: LockRequest
  readonly read?: ReadSet | undefined
}

/**
 * The sign of life of a session: it lives, and waits for these requests. Sent every `HEARTBEAT_INTERVAL`, once
 * for all requests of a box that wait. It covers each of them that is in the queues: the request blocks others until
 * the shorter of its lease and `WAITER_TTL` has passed since the last sign. Serves the keys of the requests like
 * `sweepExpired`. Grants are not covered. Safe at any time. For engines with `coversBySigns`; others answer that all
 * are due.
 */
export interface Alive {
  readonly type: 'alive'
  readonly session: string
  readonly requests: readonly LockRequest[]
}

/** Removes a request, whether it waits, is reserved or is granted. */
export interface Cancel {
  readonly type: 'cancel'
  readonly request: LockRequest
}

/** A grant: its request with the number that the engine gave it. */
export interface Granted {
  readonly request: LockRequest
  readonly number: number
}

/** Renews the lease of a grant; refused if the grant has expired or was revoked. */
export interface Renew extends Granted {
  readonly type: 'renew'
  /** Milliseconds. */
  readonly lease: number
}

/** Releases a grant. */
export interface Release extends Granted {
  readonly type: 'release'
}

/**
 * Extends a grant for further callers of the same box: it gets a new number and a full lease. If another request waits
 * for its keys, releases the grant instead, and enqueues `next`, which has the same claims, behind the others.
 */
export interface ExtendOrYield extends Granted, WaitTerms {
  readonly type: 'extendOrYield'
  readonly next: LockRequest
}

/**
 * Turns every exclusive claim of a grant into a shared one, without granting it to a writer in between. Operations on
 * the grant that are submitted later contain shared claims.
 */
export interface Downgrade extends Granted {
  readonly type: 'downgrade'
}

/** Releases the grant that holds the key under this number, on behalf of an operator. */
export interface ForceRelease {
  readonly type: 'forceRelease'
  readonly key: string
  readonly number: number
}

/** Removes all requests of a session that is known to be dead: granted, reserved and waiting ones. */
export interface Revoke {
  readonly type: 'revoke'
  readonly session: string
}

/** Drops the expired requests for these keys, and reserves the keys for the next waiters. */
export interface SweepExpired {
  readonly type: 'sweepExpired'
  readonly keys: readonly string[]
}

/** Lists the holders and waiters of all keys that begin with `prefix`, which may be empty. */
export interface Inspect {
  readonly type: 'inspect'
  readonly prefix: string
  /** Only of the key `prefix` itself. The engine then searches no other keys, because there may be millions. */
  readonly exact?: boolean | undefined
}

/** Reads several values in one step. */
export interface Read extends ReadSet {
  readonly type: 'read'
}

/**
 * Lists store keys that begin with `prefix` and come after the key `after`, in the engine's order of keys. Lists each
 * key that has had a value since before this operation. May also list keys that have none any more.
 */
export interface List {
  readonly type: 'list'
  readonly prefix: string
  /** Need not exist; empty to begin with the first key. */
  readonly after: string
  /** Maximum number of keys. Fewer are listed only if no others follow. */
  readonly limit: number
}

/** Store keys to read, and IDs to look up among those that are recorded with a key. */
export interface ReadSet {
  readonly keys: readonly string[]
  readonly ids: readonly RecordedId[]
}

/** The ID of a change, recorded with a key. Each attempt of the change uses the same key. */
export interface RecordedId {
  readonly key: string
  readonly id: string
}

/**
 * Checks that the guard is held and that every key has its expected version; then writes everything, else nothing. IDs
 * are looked up only if there is no guard, or it is not held. A guard claims the keys of the IDs, and its grant has
 * looked them up.
 */
export interface Commit {
  readonly type: 'commit'
  /** The grant that must be held; if undefined, only the versions are checked. */
  readonly guard: Granted | undefined
  readonly expect: readonly Expectation[]
  readonly writes: readonly Write[]
  readonly record: readonly RecordedId[]
  /** Time for which recorded IDs, and the tombstones that contain them, are kept, in milliseconds. */
  readonly retention: number
  /** Releases the guard in the same step. A refused commit leaves it held. */
  readonly release: boolean
}

/** The version that a key must have; 0 for an absent key. */
export interface Expectation {
  readonly key: string
  readonly version: number
}

/** A new value as JSON text, or undefined to delete the key. */
export interface Write {
  readonly key: string
  readonly value: string | undefined
}

/** Subscribes to changes of a store key, until `unwatch`. */
interface Watch {
  readonly type: 'watch' | 'unwatch'
  readonly session: string
  readonly key: string
}

export type LockOperation =
  | Enqueue
  | CheckIn
  | Alive
  | Cancel
  | Renew
  | Release
  | ExtendOrYield
  | Downgrade
  | ForceRelease
  | Revoke
  | SweepExpired
  | Inspect
type StoreOperation = Read | List | Commit | Watch
export type Operation = LockOperation | StoreOperation

/** The status of a request. */
export type RequestStatus =
  /** Granted. */
  | {
      readonly state: 'held'
      readonly id: string
      readonly number: number
      /** Present if the operation asked for it. */
      readonly read?: ReadOutcome
      /**
       * True if no other request waits. The engine then calls `Listener.contended` as soon as one waits, or when it can
       * no longer guarantee that call. Until then, further local turns need not ask the engine.
       */
      readonly isUncontended?: boolean
    }
  /** In the queue. */
  | {
      readonly state: 'queued'
      readonly id: string
      /**
       * Number of requests ahead of it on its first key. Some of them may have expired. If there are more than two, an
       * engine may count only the first ones of a long queue.
       */
      readonly place: number
      /**
       * Delay until its own check-in, unless a wake-up comes before, in milliseconds. Infinity if the signs of its
       * session are enough. Without them, a heartbeat comes at the latest after `heartbeatWithin`.
       */
      readonly checkInAfter: number
      /**
       * The sessions with a request ahead of it on any of its keys, for engines that can prove a session dead. In a
       * long queue with other waiters ahead of it, only those at both ends.
       */
      readonly sessionsAhead: readonly string[]
      /** A holder that it waits for, if the engine knows one without a further read. */
      readonly holder?: HolderReport | undefined
    }
  /** Not granted. The engine keeps nothing of the request. */
  | { readonly state: 'busy' }
  /** No such request: it has expired, was removed or has never arrived. */
  | { readonly state: 'gone' }
  /** The key is in use with another `max`. The engine keeps nothing of the request. */
  | { readonly state: 'mismatch'; readonly key: string; readonly max: number }

/** A value with the version of its last change. */
export interface Versioned {
  /** JSON text; undefined when the key is absent. */
  readonly value: string | undefined
  /** Never used again for any key, even after a deletion; 0 for an absent key. */
  readonly version: number
  /** When it was written, in milliseconds since 1970; undefined if the engine does not know. */
  readonly changed?: number
}

/** The values, and whether the IDs are recorded, in the order of the operation. */
export interface ReadOutcome {
  readonly values: readonly Versioned[]
  readonly seen: readonly boolean[]
}

export type CommitOutcome =
  /** Written. The versions are in the order of the writes, 0 for a deletion. */
  | { readonly state: 'committed'; readonly versions: readonly number[] }
  /** Not written: the guard is no longer held. Comes before a conflict: an earlier execution may have released it. */
  | { readonly state: 'lost' }
  /** Not written: the key has another version. */
  | { readonly state: 'conflict'; readonly key: string; readonly found: Versioned }
  /** Not written: an ID is recorded already, so this change was committed before. */
  | { readonly state: 'repeated'; readonly key: string; readonly id: string }

/** A request as `inspect` shows it. */
export interface RequestReport {
  readonly key: string
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  readonly claim: Claim
  readonly phase: 'held' | 'reserved' | 'waiting'
  /** The number of the grant; 0 before it is granted. */
  readonly number: number
  /** Milliseconds since it entered the queue. */
  readonly age: number
  /** Milliseconds until it expires without a renewal. */
  readonly expiresIn: number
}

/** A holder as it is reported to a waiter. */
export type HolderReport = Pick<RequestReport, 'session' | 'host' | 'pid' | 'label' | 'age'>

/** The answer to a sign of life. */
export interface SignOutcome {
  /**
   * The IDs of the named requests that do not wait in a queue: each is reserved, granted or gone, and has to check in.
   */
  readonly due: readonly string[]
  /**
   * Milliseconds until a holder or a reservation expires for which a named request is the first waiter; Infinity if
   * there is none. The next sign then finds the expired request.
   */
  readonly next: number
}

export interface Outcomes {
  enqueue: RequestStatus
  checkIn: RequestStatus
  alive: SignOutcome
  cancel: undefined
  /** False: the grant was lost. */
  renew: boolean
  /** False: the grant was already lost. */
  release: boolean
  extendOrYield: RequestStatus
  /** False: the grant was lost. */
  downgrade: boolean
  /** False: there is no such grant. */
  forceRelease: boolean
  /** Number of removed requests. */
  revoke: number
  sweepExpired: undefined
  inspect: readonly RequestReport[]
  read: ReadOutcome
  list: readonly string[]
  commit: CommitOutcome
  watch: undefined
  unwatch: undefined
}

export type OutcomeOf<O extends Operation> = Outcomes[O['type']]

/** Receives an engine's hints. A hint may be late, duplicate, false or missing. */
export interface Listener {
  /** Keys may be reserved for the request. */
  wake(id: string): void
  /**
   * The grant may be lost: the box asks by a `renew`. With a cause it is lost: the engine has found that out by itself,
   * and not by a message that others could send.
   */
  lost(id: string, cause?: Error): void
  /**
   * Another request waits for keys of this grant. Called at least for a grant with `isUncontended`. An engine with
   * `reportsContention` calls it before it decides that request; other engines call it when a message arrives.
   */
  contended(id: string): void
  /** An operation of this box has reserved this key for another session. This box has to sweep it after the window. */
  reserved(key: string): void
  /** A watched store key has changed. */
  changed(key: string): void
  /** Hints about watched store keys may have been lost, because a connection broke. */
  missed(): void
  /** The engine has ended the session: all its grants are lost, and further operations are rejected. */
  ended(cause: Error): void
}

/**
 * The service that keeps locks, limits and values. Code that all engines would need is above this contract. See
 * `docs/guarantees.md` for how each engine keeps the promises.
 */
export interface Engine {
  /** The URL without passwords, for messages. */
  readonly name: string
  readonly guarantees: Guarantees
  /** Whether `Listener.contended` is called before the other request is decided, so that boxes can keep spares. */
  readonly reportsContention: boolean
  /** Whether an enqueue may ask to `steal`. */
  readonly canSteal?: boolean
  /** Whether `alive` keeps the requests of a box. Otherwise each waiting request sends heartbeats by `checkIn`. */
  readonly coversBySigns?: boolean
  /**
   * Whether a commit can check and write only the keys that its guard claims, or a single key without a guard, because
   * the engine keeps each key for itself.
   */
  readonly checksOnlyLocked?: boolean
  /**
   * Starts the session. Called once, before any other method.
   * @throws UnavailableError when the engine can't be reached or refuses; InvalidArgumentError for an invalid URL.
   */
  join(member: SessionInfo, listener: Listener): Awaitable<void>
  /**
   * Executes one operation. Operations that are submitted in one tick may be sent together. They are executed in the
   * order of submission, and the failure of one does not affect the others. Never throws: the promise rejects with
   * UnavailableError when the operation was certainly not applied, or IndeterminateError when it may have been.
   */
  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  /**
   * Withdraws an enqueue that has not been sent: its answer is `busy`, and it is never executed. False: it may have
   * been executed. For engines whose operations wait in this process when there are many.
   */
  withdraw?(request: LockRequest): boolean
  /**
   * Returns until when the session certainly lives: clock time. For engines that end a session which sends nothing.
   * Grants are not held beyond that time, even if their lease is longer.
   */
  certainUntil?(): number
  /**
   * Reads the wall clock of the server: milliseconds since 1970. Without this method, all processes share the wall
   * clock of one machine. Fails as `submit` does.
   */
  wallClock?(): Awaitable<number>
  /**
   * Reserves permits of a limiter that all processes share, by the engine's own clock, in one step. For engines that
   * can read their clock in the same step. Fails as `submit` does. A request that is executed twice, because a
   * connection broke, may reserve permits twice, but takes back the returned ones once.
   */
  reservePermits?(request: ReservePermits): Awaitable<PermitReservation>
  /**
   * Lists the limiters that have permits in use, are paused or have waiters, in no particular order. For engines with
   * `reservePermits`. Fails as `submit` does.
   * @param isMeant whether to list the limiter of this name.
   */
  limiters?(isMeant: (limiter: string) => boolean): Awaitable<readonly KeptLimiter[]>
  /**
   * Binds a grant to the caller's transaction, for engines that keep their state in the caller's database. Until that
   * transaction ends, the keys are granted to no other request. False: the grant is no longer held. Rejects with
   * InvalidArgumentError when the argument is not a transaction, and with UnavailableError when the statement fails.
   */
  fence?(grant: Granted, transaction: SqlTransaction): Promise<boolean>
  /**
   * Executes a commit in the caller's transaction, and binds its guard to that transaction. Its writes take effect when
   * the transaction commits. For engines with `fence`. Fails as that does.
   */
  commitWithin?(commit: Commit, transaction: SqlTransaction): Promise<CommitOutcome>
  /** Ends the session, releases all its grants, and frees every handle. Never throws. */
  leave(): Awaitable<void>
}

/** The reserved permits, and the earliest and latest time of the decision by the clock of this process. */
export interface PermitReservation {
  readonly reserved: Reserved
  readonly earliest: number
  readonly latest: number
}
