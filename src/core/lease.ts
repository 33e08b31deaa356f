import type { LockRequest } from '../engine/contract.js'
import type { LostError } from '../base/errors.js'
import type { ClaimSet } from './claims.js'
import type { AcquireTerms } from './lock-options.js'

/** Maximum number of turns before the box asks the engine whether another request waits. */
const MAX_TURNS = 16
/** Maximum time of these turns, in milliseconds. */
const MAX_TURNS_TIME = 5
/** The last turn that fits into the token. */
const LAST_TURN = 1023
/** Minimum part of the lease that must be left for a further turn. With less, the box asks the engine to extend it. */
const MIN_LEASE_LEFT = 1 / 2

export interface LeaseUser {
  /** The lowest bits of its token. */
  readonly turn: number
  /** The label of its request. The engine may show that of an earlier user. */
  readonly label: string | undefined
  /** When it was granted: clock time. Undefined if nothing subscribed to grants or their ends. */
  readonly grantedAt: number | undefined
  /** Called when the lease is lost. */
  lost(): void
}

/** One grant of the engine, with its deadline. Local callers may use it one after another, and readers together. */
export class Lease {
  /**
   * - `used`: callers use it.
   * - `spare`: its last user has released it, and it is kept for the next one.
   * - `extending`: its last user has released it, and the engine decides whether to extend it or to pass the keys on.
   * - `ended`: released, being released, or lost.
   *
   * The state changes in one of these ways:
   *
   * - used → spare → used | ended
   * - used → extending → used | ended
   * - used → ended
   */
  state: 'used' | 'spare' | 'extending' | 'ended' = 'used'
  /** Set once, when the lease is lost: the engine reported its loss, or its deadline has passed. */
  loss: LostError | undefined
  /** The callers that use it, or the last one that did. Several only if all its claims are shared. */
  users: LeaseUser[] = []
  /** When the keeper renews or checks it next: clock time. */
  due = 0
  renewing = false
  /** Whether a hint says that the grant is lost, and the engine was not asked since. */
  isDoubted = false
  /** When the engine was last asked whether the grant is held: clock time. */
  askedAt = -Infinity
  /** Whether the engine has reported that no other request waits for it, and has not sent `contended` since. */
  isUncontended = false
  /** Set once it is downgraded. Readers may hold the key too, so no further turn gets it as a write grant. */
  downgraded = false
  /** Set once it is bound to a transaction. Only the engine knows when that ends, so no further turn gets it. */
  isBound = false
  turn = 0
  /**
   * Set when an operator has forced the release of this turn. The lease then gets no further turn: the release would
   * take it from that turn's user instead.
   */
  forceReleased = false
  /**
   * When turns were last known to be fair: after a reply, or after reading messages without `contended`. And the first
   * turn after that.
   */
  #turnsSince = 0
  #firstTurn = 0

  /**
   * @param request the request that the engine granted, with shared claims after a downgrade.
   * @param number the engine's number of the grant: the upper part of its tokens.
   * @param duration how long it lasts without a renewal, in milliseconds.
   * @param deadline until when it is certainly held: clock time, counted from before the request was sent.
   * @param renew whether the keeper renews it.
   * @param owner gives it to local callers.
   */
  constructor(
    public request: LockRequest,
    readonly set: ClaimSet,
    public number: number,
    public duration: number,
    public deadline: number,
    public renew: boolean,
    readonly owner: LeaseOwner,
  ) {}

  /**
   * Starts counting turns from this one, because turns are now known to be fair: the engine has just replied, or the
   * messages that have arrived contain no `contended`.
   * @param now clock time.
   */
  countTurnsFrom(turn: number, now: number): void {
    this.#firstTurn = turn
    this.#turnsSince = now
  }

  /** Whether a further turn is within the limits on turns while other boxes may wait. @param now clock time. */
  isFair(now: number): boolean {
    // mutant: endless-turns
    return this.turn + 1 - this.#firstTurn < MAX_TURNS && now - this.#turnsSince < MAX_TURNS_TIME
  }

  /** Whether a further turn on the rest of the lease satisfies a caller's request. @param now clock time. */
  satisfies({ lease, renew }: AcquireTerms, now: number): boolean {
    return (
      this.turn < LAST_TURN &&
      lease === this.duration &&
      renew === this.renew &&
      this.deadline - now >= this.duration * MIN_LEASE_LEFT
    )
  }
}

/** The local queue that gives a lease to local callers. */
export interface LeaseOwner {
  /** Called when the lease is lost. Its user may not have noticed. */
  leaseLost(lease: Lease): void
  dropSpare(lease: Lease): void
}

/** A unique name for a grant: a key never gets the same number twice. */
export function grantName(key: string, number: number): string {
  return `${number} ${key}`
}
