import { setMaxListeners } from 'node:events'
import type { ReadOutcome } from '../engine/contract.js'
import { LostError, type ErrorContext } from '../errors.js'
import type { Lease } from './lease.js'
import type { LeaseKeeper } from './lease-keeper.js'

/** Proof that the keys are held, as long as `assertHeld()` passes. */
export interface Grant extends AsyncDisposable {
  /** The fencing number: greater than that of every earlier grant of these keys. Fits a signed 64-bit column. */
  readonly token: bigint
  /** The keys held. */
  readonly keys: readonly string[]
  /** Aborts with a LostError when the grant is lost, at its deadline at the latest. */
  readonly signal: AbortSignal
  /**
   * Passes while the grant is certainly held. Does no I/O, so it can be called often.
   * @throws LostError as soon as the deadline has passed, or the grant was taken away or released.
   */
  assertHeld(): void
  /**
   * Binds the exclusive keys of the grant to a transaction of the caller's own, on an engine that keeps its state in
   * the same database. From now until that transaction has committed or is gone, no other caller gets these keys. So
   * what it writes is committed before anything that the next holder writes, also if this process is stopped for
   * longer than its lease. Call it first in the transaction, and again in each further one.
   * @param transaction the client that has begun the transaction: of `pg`, of `postgres` or of PGlite.
   * @throws LostError when the grant is not held any more: roll the transaction back. InvalidArgumentError when the
   * engine has no such transactions, or the grant has no exclusive key. UnavailableError when the statement fails,
   * which ends the transaction.
   */
  fence(transaction: object): Promise<void>
  /** Milliseconds for which the grant is still certainly held without a renewal; 0 when it is lost. */
  expiresIn(): number
  /**
   * Releases the keys; settles when others can acquire them. A second call does nothing.
   * @throws LostError when the grant was lost before; the next holder's grant is not touched. UnavailableError or
   * IndeterminateError when the engine could not be asked; the release is then tried again until the lease is over.
   */
  release(): Promise<void>
  /**
   * Releases at the end of an `await using` block. It never rejects, so the block keeps its result or error. The end of
   * such a block does not report a loss; `assertHeld()` as its last statement does, and so does `run`.
   */
  [Symbol.asyncDispose](): Promise<void>
}

/** A grant that can be downgraded, to admit readers too. */
export interface WriteGrant extends Grant {
  /**
   * Turns the write grant into a read grant, with no other writer between. Waiting readers are admitted.
   * @throws LostError when the grant was lost before; UnavailableError or IndeterminateError from the engine.
   */
  downgrade(): Promise<void>
}

/** What a grant needs of the local queue that gave it. */
export interface GrantOwner {
  readonly keeper: LeaseKeeper
  readonly keys: readonly string[]
  context(): ErrorContext
  /** Binds the lease of a grant to a transaction. @throws what `Grant.fence` throws */
  fence(grant: LocalGrant, transaction: object): Promise<void>
  /** Takes a grant back. @throws LostError when it was lost. */
  takeBack(grant: LocalGrant): Promise<void>
  downgrade(grant: LocalGrant): Promise<void>
}

/**
 * The ten bits below the engine's number count the local turns of one engine grant. Numbers are below 2^53:
 * microseconds since 1970 are for two centuries more, ZooKeeper's transactions up to epoch 2^21. So tokens fit 64 bits.
 */
const TURNS_PER_NUMBER = 1024n

/** The token of a turn. */
export function tokenOf(number: number, turn: number): bigint {
  return BigInt(number) * TURNS_PER_NUMBER + BigInt(turn)
}

/** The engine's number within a token. */
export function numberOf(token: bigint): number {
  return Number(token / TURNS_PER_NUMBER)
}

/** One caller's turn on a lease. */
export class LocalGrant implements WriteGrant {
  readonly #owner: GrantOwner
  readonly #number: number
  #controller: AbortController | undefined
  /** Set when the caller releases it; from then on it proves nothing. */
  released = false

  /** @param read what was read in the same step, if the request asked for that. */
  constructor(
    owner: GrantOwner,
    readonly lease: Lease,
    readonly turn: number,
    readonly read: ReadOutcome | undefined,
  ) {
    this.#owner = owner
    this.#number = lease.number
    lease.onLost = undefined
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
      if (this.released) controller.abort(this.#gone())
      else if (this.#owner.keeper.isLost(this.lease)) controller.abort(this.lease.loss)
      else {
        this.lease.onLost = () => {
          if (!this.released) controller.abort(this.lease.loss)
        }
      }
    }
    return this.#controller.signal
  }

  assertHeld(): void {
    if (this.released) throw this.#gone()
    if (this.#owner.keeper.isLost(this.lease)) throw this.lease.loss!
  }

  async fence(transaction: object): Promise<void> {
    this.assertHeld()
    await this.#owner.fence(this, transaction)
    this.assertHeld()
  }

  /** Whether it is still held, as far as this process knows. */
  get isHeld(): boolean {
    return !this.released && !this.#owner.keeper.isLost(this.lease)
  }

  /** Whether its deadline has passed, even if something else has ended it. */
  get isOver(): boolean {
    return this.#owner.keeper.left(this.lease) === 0
  }

  expiresIn(): number {
    if (this.released || this.lease.loss) return 0
    return this.#owner.keeper.left(this.lease)
  }

  release(): Promise<void> {
    if (this.released) return Promise.resolve()
    this.released = true
    return this.#owner.takeBack(this)
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

  #gone(): LostError {
    const { title } = this.lease.set
    return new LostError(`this grant of ${title} was already released`, this.#owner.context())
  }
}
