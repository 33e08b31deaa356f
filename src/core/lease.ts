import type { LockRequest } from '../engine/contract.js'
import type { LostError } from '../errors.js'
import type { ClaimSet } from './claims.js'
import type { AcquireRequest } from './lock-options.js'

/** Maximum turns of a lease, and milliseconds, until the engine is asked whether others wait. */
const MAX_TURNS = 16
const MAX_TURNS_TIME = 5
/** The last turn that the token has room for. */
const LAST_TURN = 1023
/** A turn gets at least this part of the lease; below it the engine is asked for a full one. */
const ENOUGH_LEASE = 1 / 2

/** One grant of the engine, with its deadline. Several local callers may use it one after another. */
export class Lease {
  /** Set once, when the lease is lost, because the engine said so or because the deadline passed. */
  loss: LostError | undefined
  /** Notifies its present user of its loss. */
  onLost: (() => void) | undefined
  /** When the keeper looks at it next: clock time. */
  due = 0
  renewing = false
  /** Whether the engine has said that no other request waits for it, and has not said `contended` since. */
  isUncontended = false
  /** Set once it was downgraded to read: others may hold the key too, so it is not handed on as a write grant. */
  downgraded = false
  /** Set once it was bound to a transaction: only the engine knows when that ends, so it is not handed on here. */
  isBound = false
  /** The turn of its present local user: the lowest bits of the token. */
  turn = 0
  /** When that turn began, if grants or their ends have a listener: clock time. */
  grantedAt: number | undefined
  /** Set once an operator takes this turn away: the next caller on the same lease would lose it instead. */
  isTakenAway = false
  /** Whether it is a spare, which no caller uses. */
  isSpare = false
  /** When the engine last answered, and the turn that came then. */
  #turnsSince = 0
  #firstTurn = 0

  /**
   * @param request what the engine knows it by; with shared claims after a downgrade.
   * @param number the engine's number of the grant, the upper part of its tokens.
   * @param duration how long it lasts without a renewal, in milliseconds.
   * @param deadline until when it is certainly held: clock time, counted from before the request was sent.
   * @param renew whether the keeper renews it.
   * @param owner hands it out, and is notified when it is lost.
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

  /** Counts turns from this one, because the engine answered just now. @param now clock time. */
  countTurnsFrom(turn: number, now: number): void {
    this.#firstTurn = turn
    this.#turnsSince = now
  }

  /** Whether a further turn keeps other processes waiting for no longer than is fair. @param now clock time. */
  isFair(now: number): boolean {
    // mutant: endless-turns
    return this.turn + 1 - this.#firstTurn < MAX_TURNS && now - this.#turnsSince < MAX_TURNS_TIME
  }

  /** Whether a further turn, with the rest of the lease, gives a caller what it asks for. @param now clock time. */
  satisfies({ lease, renew }: AcquireRequest, now: number): boolean {
    return (
      this.turn < LAST_TURN &&
      lease === this.duration &&
      renew === this.renew &&
      this.deadline - now >= this.duration * ENOUGH_LEASE
    )
  }
}

/** Hands a lease out to local callers. */
export interface LeaseOwner {
  /** Called when the lease is lost. Its user may not have found out. */
  leaseLost(lease: Lease): void
  /** Releases the spare lease. */
  dropSpare(lease: Lease): void
}

/** A unique name for a grant: each number is given only once for a key. */
export function grantName(key: string, number: number): string {
  return `${number} ${key}`
}
