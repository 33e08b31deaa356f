import type { Claim } from './claim.js'
import type { Guarantees } from '../guarantees.js'
import type { Reserve, Reserved } from '../limits/rules/reserve.js'

/** An answer that is there at once (an engine inside the process) or comes later. */
export type Awaitable<T> = T | Promise<T>

/** Who a session belongs to, for those who look at holders and waiters. */
export interface SessionInfo {
  /** The session id: unique among all boxes that ever were. */
  readonly session: string
  readonly host: string
  readonly pid: number
  /** What the box was called when it was opened. */
  readonly label: string | undefined
}

/** Enters the queues of all claimed keys in one step; is granted at once when nobody stands before it. */
export interface Enqueue {
  readonly type: 'enqueue'
  /** Unique among the requests of all sessions. Repeating an enqueue under the same id changes nothing. */
  readonly id: string
  readonly session: string
  readonly claims: readonly Claim[]
  /** How long the grant outlives silence: milliseconds. */
  readonly lease: number
  /**
   * How long anybody waits for it: milliseconds, Infinity for as long as it takes. The queue entry outlives silence for
   * `entryLife`. 0: answered `busy` instead of queued, and nothing is left behind.
   */
  readonly wait: number
  readonly label: string | undefined
  /** What to read in the same step when it is granted. */
  readonly read?: ReadSet | undefined
}

/**
 * Turns a reservation into a grant, or looks again: keeps the entry of a waiter alive, and drops what has expired
 * before it. Naming a request that is granted already renews it. Harmless at any time.
 */
export interface Poll {
  readonly type: 'claim'
  readonly id: string
  readonly lease: number
  /** How long anybody waits for it from now on, as in an enqueue. */
  readonly wait: number
  readonly read?: ReadSet | undefined
}

/** Takes a request out, whatever became of it: an entry, a reservation or a grant. */
export interface Cancel {
  readonly type: 'cancel'
  readonly id: string
}

/** Sets the lease of a grant anew; refused when it has expired or was taken away. */
export interface Renew {
  readonly type: 'renew'
  readonly id: string
  readonly number: number
  readonly lease: number
}

/** Gives a grant back. */
export interface Release {
  readonly type: 'release'
  readonly id: string
  readonly number: number
}

/**
 * Asks to keep a grant for further callers of the same process. Where somebody else waits for its keys it is released
 * and `next`, with the same claims, enters the queues behind them; else it gets a new number and a full lease.
 */
export interface Pass {
  readonly type: 'pass'
  readonly id: string
  readonly number: number
  readonly next: string
  readonly lease: number
  /** How long anybody waits for `next`, as in an enqueue. */
  readonly wait: number
  readonly label: string | undefined
}

/** Makes every exclusive claim of a grant shared, without letting a writer in between. */
export interface Downgrade {
  readonly type: 'downgrade'
  readonly id: string
  readonly number: number
}

/** An operator's release of whatever grant with this number holds the key. */
export interface Free {
  readonly type: 'free'
  readonly key: string
  readonly number: number
}

/** Takes away all grants, reservations and entries of a session that is known to be dead. */
export interface Revoke {
  readonly type: 'revoke'
  readonly session: string
}

/** Drops what has expired on these keys and reserves them for whoever is next. */
export interface Serve {
  readonly type: 'serve'
  readonly keys: readonly string[]
}

/** Reads who holds and who waits; of all keys, or of those that begin with `prefix`. */
export interface Inspect {
  readonly type: 'inspect'
  readonly prefix: string
}

/** Reads values together. */
export interface Read extends ReadSet {
  readonly type: 'read'
}

/** Store keys to read, and ids to look for among those recorded with a key. */
export interface ReadSet {
  readonly keys: readonly string[]
  readonly ids: readonly RecordedId[]
}

/** The id of a change, recorded with the key that stays the same whenever that change is tried. */
export interface RecordedId {
  readonly key: string
  readonly id: string
}

/**
 * Checks everything, then writes everything, or writes nothing: the guarding grant holds and every expected version is
 * there. Ids are looked for where no guard holds; under a guard, which claims their keys, they were looked for with the
 * grant.
 */
export interface Commit {
  readonly type: 'commit'
  /** The grant that must still hold; without it only the versions count. */
  readonly guard: { readonly id: string; readonly number: number } | undefined
  readonly expect: readonly Expectation[]
  readonly writes: readonly Write[]
  readonly record: readonly RecordedId[]
  /** How long recorded ids, and the tombstones that carry them, are kept: milliseconds. */
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

/** Asks to be told of every change of a store key, until `unwatch`. */
interface Watch {
  readonly type: 'watch' | 'unwatch'
  readonly session: string
  readonly key: string
}

export type LockOperation =
  Enqueue | Poll | Cancel | Renew | Release | Pass | Downgrade | Free | Revoke | Serve | Inspect
type StoreOperation = Read | Commit | Watch
export type Operation = LockOperation | StoreOperation

/** Where a request stands after it was looked at. */
export type RequestStatus =
  /** Granted. */
  | {
      readonly state: 'held'
      readonly id: string
      readonly number: number
      /** There when something was to be read. */
      readonly read?: ReadOutcome
      /**
       * True when nobody else waited, and `Listener.wanted` is told by a message as soon as somebody does, or when that
       * can't be vouched for any longer. Until then further local turns need not ask the engine.
       */
      readonly isAlone?: boolean
    }
  /** In the queue. */
  | {
      readonly state: 'queued'
      readonly id: string
      /** How many requests stand before it on its first key. */
      readonly place: number
      /** When looking again can be worth while, if nothing is heard until then: milliseconds from now. */
      readonly lookAgain: number
      /** All sessions that stand before it on any of its keys, for engines that can prove a session dead. */
      readonly behind: readonly string[]
    }
  /** Not granted, and nothing left behind. */
  | { readonly state: 'busy' }
  /** No such request: it expired, was taken away or never came. */
  | { readonly state: 'gone' }
  /** The key is live with another number of permits. Nothing left behind. */
  | { readonly state: 'mismatch'; readonly key: string; readonly max: number }

/** A value with the version of its last change. */
export interface Versioned {
  /** JSON text; undefined when the key is absent. */
  readonly value: string | undefined
  /** Never used again for any key, also over deletion; 0 for an absent key. */
  readonly version: number
}

/** What was read: in the order of the keys and of the ids that were named. */
export interface ReadOutcome {
  readonly values: readonly Versioned[]
  readonly seen: readonly boolean[]
}

export type CommitOutcome =
  /** Written; `versions` in the order of the writes (0 for a deletion). */
  | { readonly state: 'committed'; readonly versions: readonly number[] }
  /** The guarding grant does not hold any more. Nothing written. */
  | { readonly state: 'lost' }
  /** Another version is there. Nothing written. */
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

export interface Outcomes {
  enqueue: RequestStatus
  claim: RequestStatus
  cancel: undefined
  /** False: the grant is gone. */
  renew: boolean
  /** False: the grant was gone already. */
  release: boolean
  pass: RequestStatus
  downgrade: boolean
  free: boolean
  /** How many requests were taken away. */
  revoke: number
  serve: undefined
  inspect: readonly RequestReport[]
  read: ReadOutcome
  commit: CommitOutcome
  watch: undefined
  unwatch: undefined
}

export type OutcomeOf<O extends Operation> = Outcomes[O['type']]

/** What an engine tells a box unasked. Each is a hint: it may come late, twice, for nothing, or not at all. */
export interface Listener {
  /** The request may have been reserved. */
  wake(id: string): void
  /** The grant was taken away. @param cause what has ended it, where nobody took it */
  lost(id: string, cause?: Error): void
  /**
   * Somebody waits for what this grant holds. Told at once, before that other request is decided, by engines that say
   * `tellsWanted`; by a message where a grant was said to be alone; else not at all.
   */
  wanted(id: string): void
  /** An operation of this box reserved this key for another session; somebody has to look after the window. */
  reserved(key: string): void
  /** A watched store key has changed. */
  changed(key: string): void
  /** Changes of watched store keys may not have been told, because the way that they are told by was broken. */
  missed(): void
  /** The engine has ended the session: all its grants are lost, and nothing more can be asked. */
  ended(cause: Error): void
}

/**
 * Where locks and state live. Everything two engines would both need is built above this contract; see
 * `docs/guarantees.md` for how each engine keeps the promises through it.
 */
export interface Engine {
  /** For messages: the URL without passwords. */
  readonly name: string
  readonly guarantees: Guarantees
  /** Whether `Listener.wanted` is told reliably, so that a released grant can be kept for the next caller here. */
  readonly tellsWanted: boolean
  /**
   * Starts the session. Called once, before anything else.
   * @throws UnavailableError when the engine can't be reached or refuses; InvalidArgumentError for an unfit place.
   */
  join(member: SessionInfo, listener: Listener): Awaitable<void>
  /**
   * Carries out one operation. Operations submitted in one tick may travel together; they are carried out in the
   * order of submission, and the failure of one is its own. Never throws: a failure is
   * a promise rejected with UnavailableError when it was certainly not applied, IndeterminateError when it may have been.
   */
  submit<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  /**
   * Takes an enqueue back that still waits to be carried out: then it never is, and is answered `busy`. False: it may
   * have been carried out by now. For engines where operations wait within the process when there are many.
   */
  withdraw?(id: string): boolean
  /**
   * Until when the session, and with it all that it holds, lives for certain: clock time. For engines whose sessions end
   * by silence; grants are not held beyond it, whatever their lease.
   */
  certainUntil?(): number
  /**
   * Reserves permits of a limiter by the engine's own clock, in one step, for all processes that name it. For engines that
   * have a clock which can be read in the same step. Fails as `submit` does; one that is carried out twice, because a
   * connection broke, may reserve twice but takes back once.
   */
  reserve?(request: Reserve): Awaitable<Reservation>
  /** Ends the session, with all it holds, and frees every handle. Never throws. */
  leave(): Awaitable<void>
}

/** What was reserved, and when that was by the clock of this process: two of its times between which it was decided. */
export interface Reservation {
  readonly reserved: Reserved
  readonly earliest: number
  readonly latest: number
}

/** How long a reservation waits to be claimed: milliseconds. */
export const CLAIM_WINDOW = 1000

/** How long a waiter may be silent before other requests may go past it: milliseconds. */
export const WAITER_LIFE = 5000

/** How often a waiter tells that it lives, unless its lease or its wait asks for more: milliseconds. */
export const HEARD_EVERY = WAITER_LIFE / 3

/** Every watched key is read again once in this time, because hints may be lost: milliseconds. */
export const LOOK_EVERY = 10_000

/** How long a request is good for, as an operation says it. */
type Patience = Pick<Enqueue, 'lease' | 'wait'>

/**
 * How long a waiter's entry in the queue outlives silence: milliseconds. After that it keeps its place until a request
 * that came later needs it, see {@link placeLife}.
 */
export function entryLife(patience: Patience): number {
  return Math.min(placeLife(patience), WAITER_LIFE)
}

/**
 * How long a waiter's place is good for, should the engine be out of reach: milliseconds. An entry whose callers have
 * given up is in the way of others if its cancellation comes late or never; the window on top lets callers who came later
 * look again in time.
 */
export function placeLife({ lease, wait }: Patience): number {
  return Math.min(lease, wait + CLAIM_WINDOW)
}

/** After how long a waiter has to be heard of again, so that its entry lives on: milliseconds. */
export function hearWithin({ lease, wait }: Patience): number {
  return Math.min(lease * HEARD_OF, wait + CLAIM_WINDOW * HEARD_OF, HEARD_EVERY)
}

/** The part of its lease, or of the window after its wait, by whose end a waiter has to be heard of again. */
const HEARD_OF = 2 / 3
