import type { Claim } from './claim.js'
import type { Guarantees } from '../guarantees.js'
import type { KeptLimiter } from './limits/report.js'
import type { ReservePermits, Reserved } from './limits/reserve-permits.js'

/** An answer that is available at once (an engine inside the process) or comes later. */
export type Awaitable<T> = T | Promise<T>

/** The process that a session belongs to, as `inspect` shows it with holders and waiters. */
export interface SessionInfo {
  /** The session id: never used by another box, past or present. */
  readonly session: string
  readonly host: string
  readonly pid: number
  /** The label that the box was opened with. */
  readonly label: string | undefined
}

/** A request for locks, from its enqueue to the end of its grant. Every operation about it carries it. */
export interface LockRequest {
  /** Unique among the requests of all sessions. */
  readonly id: string
  readonly session: string
  readonly claims: readonly Claim[]
  readonly label: string | undefined
}

/** How long a request, and the grant that comes of it, last. */
export interface WaitTerms {
  /** How long the grant lasts without a renewal, in milliseconds. */
  readonly lease: number
  /** The longest that a caller waits for the grant from now on: milliseconds, Infinity for as long as it takes. */
  readonly wait: number
}

/**
 * Enters the queues of all claimed keys in one step. Granted at once when no conflicting request is before it. The
 * entry lasts for `entryTtl` without a sign of life. With a wait of 0 the request is answered `busy` instead of
 * queued, and nothing is left behind. Repeating an enqueue of the same request changes nothing.
 */
export interface Enqueue extends WaitTerms {
  readonly type: 'enqueue'
  readonly request: LockRequest
  /** What to read in the same step when it is granted. */
  readonly read?: ReadSet | undefined
}

/**
 * Turns a reservation into a grant. For a waiter, keeps its entry alive, and drops what has expired before it. For a
 * request that is granted already, renews the grant. Harmless at any time.
 */
export interface CheckIn extends WaitTerms {
  readonly type: 'checkIn'
  readonly request: LockRequest
  readonly read?: ReadSet | undefined
}

/** Takes a request out, whether it is an entry, a reservation or a grant. */
export interface Cancel {
  readonly type: 'cancel'
  readonly request: LockRequest
}

/** A grant: its request with the number that the engine gave it. */
export interface Granted {
  readonly request: LockRequest
  readonly number: number
}

/** Renews the lease of a grant; refused when the grant has expired or was taken away. */
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
 * Asks to keep a grant for further callers of the same process. When another request waits for its keys, the grant is
 * released, and `next`, with the same claims, enters the queues behind. Otherwise it gets a new number and a full
 * lease.
 */
export interface ExtendOrYield extends Granted, WaitTerms {
  readonly type: 'extendOrYield'
  readonly next: LockRequest
}

/**
 * Makes every exclusive claim of a grant shared, without letting a writer in between. Operations about it that are
 * submitted later carry shared claims.
 */
export interface Downgrade extends Granted {
  readonly type: 'downgrade'
}

/** An operator's release of the grant that holds the key with this number. */
export interface ForceRelease {
  readonly type: 'forceRelease'
  readonly key: string
  readonly number: number
}

/** Takes away all grants, reservations and entries of a session that is known to be dead. */
export interface Revoke {
  readonly type: 'revoke'
  readonly session: string
}

/** Drops what has expired on these keys and reserves them for the next waiters. */
export interface SweepExpired {
  readonly type: 'sweepExpired'
  readonly keys: readonly string[]
}

/** Reads the holders and waiters of all keys that begin with `prefix`, which may be empty. */
export interface Inspect {
  readonly type: 'inspect'
  readonly prefix: string
  /** Of the key `prefix` alone. An engine looks for no others then, because there may be millions. */
  readonly exact?: boolean | undefined
}

/** Reads several values in one step. */
export interface Read extends ReadSet {
  readonly type: 'read'
}

/** Store keys to read, and ids to look for among those recorded with a key. */
export interface ReadSet {
  readonly keys: readonly string[]
  readonly ids: readonly RecordedId[]
}

/** The id of a change. It is recorded with a key that is the same at each try of that change. */
export interface RecordedId {
  readonly key: string
  readonly id: string
}

/**
 * Checks everything, then writes everything or nothing: the guarding grant has to hold, and every key has to have its
 * expected version. Ids are looked for only where no guard holds. Under a guard, which claims their keys, they were
 * looked for with the grant.
 */
export interface Commit {
  readonly type: 'commit'
  /** The grant that must still hold; without it only the versions count. */
  readonly guard: Granted | undefined
  readonly expect: readonly Expectation[]
  readonly writes: readonly Write[]
  readonly record: readonly RecordedId[]
  /** How long recorded ids, and the tombstones that carry them, are kept, in milliseconds. */
  readonly retention: number
  /** Releases the guarding grant in the same step. A refused commit leaves it held. */
  readonly release: boolean
}

/** The version a key must have; 0 stands for an absent key. */
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
  | Cancel
  | Renew
  | Release
  | ExtendOrYield
  | Downgrade
  | ForceRelease
  | Revoke
  | SweepExpired
  | Inspect
type StoreOperation = Read | Commit | Watch
export type Operation = LockOperation | StoreOperation

/** The status of a request. */
export type RequestStatus =
  /** Granted. */
  | {
      readonly state: 'held'
      readonly id: string
      readonly number: number
      /** Present when the operation asked for a read. */
      readonly read?: ReadOutcome
      /**
       * True when no other request waited. Then `Listener.contended` is called as soon as one waits, or when the engine
       * can no longer guarantee that call. Until then further local turns need not ask the engine.
       */
      readonly isUncontended?: boolean
    }
  /** In the queue. */
  | {
      readonly state: 'queued'
      readonly id: string
      /** How many requests are before it on its first key. */
      readonly place: number
      /** When to check in again unless a wake-up comes before: milliseconds from now. */
      readonly lookAgain: number
      /**
       * The sessions with a request before it on any of its keys, for engines that can prove a session dead. Where
       * other requests wait before it, too, those at the ends of a long queue only.
       */
      readonly behind: readonly string[]
      /** True when `behind` leaves sessions out. */
      readonly leavesOut?: boolean
      /** A holder that it waits for, where the engine knows one without looking further. */
      readonly holder?: HolderReport | undefined
    }
  /** Not granted, and nothing is left behind. */
  | { readonly state: 'busy' }
  /** No such request: it expired, was taken away or never came. */
  | { readonly state: 'gone' }
  /** The key is in use with another number of permits. Nothing is left behind. */
  | { readonly state: 'mismatch'; readonly key: string; readonly max: number }

/** A value with the version of its last change. */
export interface Versioned {
  /** JSON text; undefined when the key is absent. */
  readonly value: string | undefined
  /** Never used again for any key, also after a deletion; 0 for an absent key. */
  readonly version: number
}

/** What was read, in the order of the keys and ids of the operation. */
export interface ReadOutcome {
  readonly values: readonly Versioned[]
  readonly seen: readonly boolean[]
}

export type CommitOutcome =
  /** Written; `versions` in the order of the writes (0 for a deletion). */
  | { readonly state: 'committed'; readonly versions: readonly number[] }
  /** The guarding grant does not hold any more. Nothing written. */
  | { readonly state: 'lost' }
  /** The key has another version. Nothing written. */
  | { readonly state: 'conflict'; readonly key: string; readonly found: Versioned }
  /** An id is recorded already: this change was committed before. Nothing written. */
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
  /** Milliseconds until it expires unless it is renewed. */
  readonly expiresIn: number
}

/** A holder as it is reported to a waiter behind it. */
export type HolderReport = Pick<RequestReport, 'session' | 'host' | 'pid' | 'label' | 'age'>

export interface Outcomes {
  enqueue: RequestStatus
  checkIn: RequestStatus
  cancel: undefined
  /** False: the grant is gone. */
  renew: boolean
  /** False: the grant was gone already. */
  release: boolean
  extendOrYield: RequestStatus
  downgrade: boolean
  forceRelease: boolean
  /** How many requests were taken away. */
  revoke: number
  sweepExpired: undefined
  inspect: readonly RequestReport[]
  read: ReadOutcome
  commit: CommitOutcome
  watch: undefined
  unwatch: undefined
}

export type OutcomeOf<O extends Operation> = Outcomes[O['type']]

/** Receives an engine's notifications. Each call is a hint: it may come late, twice, without cause, or not at all. */
export interface Listener {
  /** The request may have been reserved. */
  wake(id: string): void
  /** The grant is lost. @param cause what has ended it, when it was not taken away */
  lost(id: string, cause?: Error): void
  /**
   * Another request waits for what this grant holds. Called at least for a grant with `isUncontended`. An engine with
   * `reportsContention` calls it before it decides that other request; others send a message, which takes its time.
   */
  contended(id: string): void
  /** An operation of this box reserved this key for another session. This box has to serve the key after the window. */
  reserved(key: string): void
  /** A watched store key has changed. */
  changed(key: string): void
  /** Hints about watched store keys may have been lost, because their connection was broken. */
  missed(): void
  /** The engine has ended the session: all its grants are lost, and nothing more can be asked. */
  ended(cause: Error): void
}

/**
 * The service that keeps locks and state. What all engines would need is built above this contract. See
 * `docs/guarantees.md` for how each engine keeps the promises.
 */
export interface Engine {
  /** For messages: the URL without passwords. */
  readonly name: string
  readonly guarantees: Guarantees
  /** Whether `Listener.contended` comes before the other request is decided, so that a released grant can be kept. */
  readonly reportsContention: boolean
  /**
   * Starts the session. Called once, before anything else.
   * @throws UnavailableError when the engine can't be reached or refuses; InvalidArgumentError for an invalid place.
   */
  join(member: SessionInfo, listener: Listener): Awaitable<void>
  /**
   * Executes one operation. Operations submitted in one tick may be sent together. They are executed in the order of
   * submission, and the failure of one does not affect the others. Never throws: a failure is a promise rejected with
   * UnavailableError when the operation was certainly not applied, or IndeterminateError when it may have been.
   */
  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  /**
   * Withdraws an enqueue that still waits to be executed: it is answered `busy` and never executed. False: it may have
   * been executed by now. For engines where operations wait within the process when there are many.
   */
  withdraw?(request: LockRequest): boolean
  /**
   * Until when the session certainly lives, and with it all that it holds: clock time. For engines whose sessions end
   * when they send nothing. Grants are not held beyond that time, even if their lease is longer.
   */
  certainUntil?(): number
  /**
   * Reads the wall clock that all processes share: milliseconds since 1970. For engines on a server. Without it, the
   * processes share the wall clock of their machine. Fails as `submit` does.
   */
  wallClock?(): Awaitable<number>
  /**
   * Reserves permits of a limiter by the engine's own clock, in one step, for all processes that name it. For engines
   * whose clock can be read in the same step. Fails as `submit` does. A request that is executed twice, because a
   * connection broke, may reserve twice but takes back once.
   */
  reservePermits?(request: ReservePermits): Awaitable<Reservation>
  /**
   * The limiters that count something now, are paused or have waiters, in no particular order. For engines with
   * `reservePermits`. Fails as `submit` does.
   * @param isMeant whether a limiter of this name is wanted.
   */
  limiters?(isMeant: (limiter: string) => boolean): Awaitable<readonly KeptLimiter[]>
  /**
   * Binds a grant to a transaction of the caller's, for engines that keep their state in a database of the caller's.
   * Until that transaction ends, the keys are granted to no other request. False: the grant is not held any more.
   * Rejects with InvalidArgumentError for what is not a transaction, and with UnavailableError when the statement
   * fails.
   */
  fence?(grant: Granted, transaction: object): Promise<boolean>
  /**
   * Makes a commit part of a transaction of the caller's, and binds its guard to that. Nothing is written until the
   * transaction commits. For engines with `fence`. Fails as that does.
   */
  commitWithin?(commit: Commit, transaction: object): Promise<CommitOutcome>
  /** Ends the session, releases all that it holds, and frees every handle. Never throws. */
  leave(): Awaitable<void>
}

/** What was reserved, and the earliest and latest time of that decision by the clock of this process. */
export interface Reservation {
  readonly reserved: Reserved
  readonly earliest: number
  readonly latest: number
}

/** How long a reservation can be claimed, in milliseconds. */
export const CLAIM_WINDOW = 1000

/** How long a waiter blocks other requests without a heartbeat, in milliseconds. */
export const WAITER_TTL = 5000

/**
 * How often a waiter reports that it is alive, unless its lease or its wait requires it more often, in milliseconds.
 */
export const HEARTBEAT_INTERVAL = WAITER_TTL / 3

/** Every watched key is read again once in this period, because hints may be lost, in milliseconds. */
export const WATCH_READ_INTERVAL = 10_000

/**
 * How long a waiter's entry in the engine's queue blocks others without a heartbeat, in milliseconds. After that it
 * keeps its place until a request that came later needs it, see {@link placeTtl}.
 */
export function entryTtl(terms: WaitTerms): number {
  return Math.min(placeTtl(terms), WAITER_TTL)
}

/**
 * How long a waiter keeps its place when the engine is unreachable, in milliseconds. An entry whose callers have given
 * up is in the way of others if its cancellation comes late or never. The window on top lets callers that came later
 * look again in time.
 */
export function placeTtl({ lease, wait }: WaitTerms): number {
  return Math.min(lease, wait + CLAIM_WINDOW)
}

/** Maximum time between two heartbeats of a waiter that keep its entry alive, in milliseconds. */
export function heartbeatWithin({ lease, wait }: WaitTerms): number {
  return Math.min(lease * HEARTBEAT_PART, wait + CLAIM_WINDOW * HEARTBEAT_PART, HEARTBEAT_INTERVAL)
}

/** The part of its lease, or of the window after its wait, within which a waiter must send a heartbeat. */
const HEARTBEAT_PART = 2 / 3
