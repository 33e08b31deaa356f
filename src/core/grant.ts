import { setMaxListeners } from 'node:events'
import type { ReadOutcome, SqlTransaction } from '../engine/contract.js'
import { LostError } from '../base/errors.js'
import { printedAs } from '../base/printed.js'
import type { Lease, LeaseUser } from './lease.js'
import type { LeaseKeeper } from './lease-keeper.js'
import type { LockErrors } from './lock-errors.js'

/** Proof that the keys are held, as long as `assertHeld()` passes. */
export interface Grant extends AsyncDisposable {
  /** The fencing token: greater than the token of every earlier grant of these keys. Fits a signed 64-bit column. */
  readonly token: bigint
  /** The keys held. */
  readonly keys: readonly string[]
  /**
   * Aborts with a LostError when the grant is lost. In a process that was paused, it aborts only when timers run again;
   * `assertHeld` is exact.
   */
  readonly signal: AbortSignal
  /**
   * Returns while the grant is certainly held. Does no I/O, so it can be called often.
   * @throws LostError once the deadline has passed, or the grant was lost or released.
   */
  assertHeld(): void
  /**
   * Binds the exclusive keys of the grant to the caller's own transaction, on an engine that keeps its state in the
   * same database. Until the transaction commits or rolls back, no other caller gets these keys. So the writes of the
   * transaction are committed before the next holder writes, even if this process is paused for longer than its lease.
   * Call it first in each transaction.
   * @param transaction a client that has begun the transaction, or an object that runs statements in it.
   * @throws LostError when the grant is no longer held: roll the transaction back. InvalidArgumentError when the engine
   * has no such transactions, or the grant has no exclusive key. UnavailableError when the statement fails, which
   * aborts the transaction.
   */
  fence(transaction: SqlTransaction): Promise<void>
  /** Returns how long the grant is certainly held without a renewal, in milliseconds; 0 when it is lost. */
  expiresIn(): number
  /**
   * Releases the keys; settles when others can acquire them. A second call does nothing.
   * @throws LostError when the grant was already lost; the release does not affect the next holder. UnavailableError or
   * IndeterminateError when the engine did not confirm the release; it is retried until the lease expires.
   */
  release(): Promise<void>
  /**
   * Releases at the end of an `await using` block. It never rejects, so the block keeps its result or error, and the
   * loss of the grant is not reported. To report it, call `assertHeld()` as the last statement, or use `run`.
   */
  [Symbol.asyncDispose](): Promise<void>
}

/** A grant that can be downgraded, to admit readers too. */
export interface WriteGrant extends Grant {
  /**
   * Turns the write grant into a read grant; no other writer gets the lock in between. Waiting readers are admitted.
   * @throws LostError when the grant was already lost; UnavailableError or IndeterminateError from the engine.
   */
  downgrade(): Promise<void>
}

/** The local queue that created a grant, as far as the grant needs it. */
export interface GrantOwner {
  readonly keeper: LeaseKeeper
  readonly keys: readonly string[]
  readonly errors: LockErrors
  /** Binds the lease of a grant to a transaction. @throws what `Grant.fence` throws */
  fence(grant: LocalGrant, transaction: SqlTransaction): Promise<void>
  /** Called when the user releases the grant. Rejects with a LostError when the grant was lost. */
  onRelease(grant: LocalGrant): Promise<void>
  downgrade(grant: LocalGrant): Promise<void>
}

/**
 * The ten lowest bits of a token count the local turns of one engine grant; the engine's number is above them. Numbers
 * are below 2^53, so tokens fit 64 bits: microseconds since 1970 reach 2^53 in the year 2255, and ZooKeeper's
 * transaction IDs in epoch 2^21.
 */
const TURNS_PER_NUMBER = 1024n

export function tokenOf(number: number, turn: number): bigint {
  return BigInt(number) * TURNS_PER_NUMBER + BigInt(turn)
}

export function numberOf(token: bigint): number {
  return Number(token / TURNS_PER_NUMBER)
}

export function printedGrant(grant: Grant, label?: string): object {
  const { keys, token } = grant
  // JSON has no integers of 64 bits.
  return {
    keys,
    token: String(token),
    expiresIn: Math.round(grant.expiresIn()),
    ...(label !== undefined && { label }),
  }
}

/** One caller's turn on a lease. */
export class LocalGrant implements WriteGrant, LeaseUser {
  readonly #owner: GrantOwner
  readonly #number: number
  #controller: AbortController | undefined
  /** Set when its user releases it; from then on `assertHeld` throws. */
  released = false

  /** @param read the values that the engine read in the same step as the grant, if the request asked for any. */
  constructor(
    owner: GrantOwner,
    readonly lease: Lease,
    readonly turn: number,
    readonly label: string | undefined,
    readonly grantedAt: number | undefined,
    readonly read: ReadOutcome | undefined,
  ) {
    this.#owner = owner
    this.#number = lease.number
  }

  static {
    printedAs(this, 'Grant', grant => printedGrant(grant, grant.label))
  }

  get token(): bigint {
    return tokenOf(this.#number, this.turn)
  }

  get keys(): readonly string[] {
    return this.#owner.keys
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      // Created on demand: most callers never use the signal, and a controller costs microseconds.
      const controller = (this.#controller = new AbortController())
      // Many parts of a task may listen to its one signal.
      setMaxListeners(0, controller.signal)
      if (this.released) controller.abort(this.#alreadyReleased())
      else if (this.#owner.keeper.isLost(this.lease)) controller.abort(this.lease.loss)
    }
    return this.#controller.signal
  }

  lost(): void {
    this.#controller?.abort(this.lease.loss)
  }

  assertHeld(): void {
    if (this.released) throw this.#alreadyReleased()
    if (this.#owner.keeper.isLost(this.lease)) throw this.lease.loss!
  }

  async fence(transaction: SqlTransaction): Promise<void> {
    this.assertHeld()
    await this.#owner.fence(this, transaction)
    this.assertHeld()
  }

  /** Whether it is held, as far as this process knows. */
  get isHeld(): boolean {
    return !this.released && !this.#owner.keeper.isLost(this.lease)
  }

  /** Whether its deadline has passed, even if it was lost or released earlier. */
  get isPastDeadline(): boolean {
    return this.#owner.keeper.left(this.lease) === 0
  }

  expiresIn(): number {
    if (this.released || this.lease.loss) return 0
    return this.#owner.keeper.left(this.lease)
  }

  release(): Promise<void> {
    if (this.released) return Promise.resolve()
    this.released = true
    return this.#owner.onRelease(this)
  }

  downgrade(): Promise<void> {
    try {
      this.assertHeld()
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#owner.downgrade(this)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release().catch(() => undefined)
  }

  #alreadyReleased(): LostError {
    const { title } = this.lease.set
    return new LostError(`this grant of ${title} was already released`, this.#owner.errors.context)
  }
}
