import { aboutTask, InvalidArgumentError, LostError, lostBeforeEnd, ofTask, shown } from '../errors.js'
import { Ahead } from '../engine/claim.js'
import type { Session } from './session.js'
import type { ClaimSet } from './claims.js'
import type { Grant, LocalGrant, WriteGrant } from './grant.js'
import type { LocalQueue } from './local-queue.js'
import { checkedOptions, checkedTryOptions, type CheckedOptions, type LockOptions } from './lock-options.js'

/** What every lock can do: the same three methods for all claims and all engines. */
export interface Lock<G extends Grant = Grant, O extends LockOptions = LockOptions> {
  /**
   * Returns the grant if the lock is free and has no waiter, else undefined. Never waits.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  tryAcquire(options?: Omit<O, 'wait' | 'signal'>): Promise<G | undefined>
  /**
   * Whether `tryAcquire` would get nothing now, because of a holder or a waiter in any process. Another caller may take
   * or release the lock before this one reads the answer.
   * @throws UnavailableError, ClosedError; IndeterminateError when the answer never came
   */
  isLocked(): Promise<boolean>
  /**
   * Returns the grant as soon as it is this caller's turn: first come, first served.
   * @throws TimedOutError when `wait` is over (BusyError for a wait of 0), AbortedError, DeadlockError,
   * InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  acquire(options?: O): Promise<G>
  /**
   * Acquires, calls `task`, releases, and returns the task's result. It returns the result even if the release failed:
   * then the lease ends the grant, and the channel `signalbox:lock:release-failed` reports it.
   * @throws what `acquire` throws, with a `taskBegan` of false; what the task throws; LostError with a `taskBegan` of
   * true when the loss of the grant ended the task, through `grant.signal` or `assertHeld`; LostError with `taskEnded`
   * and the `result` when the task succeeded but its grant had been lost.
   */
  run<T>(task: (grant: G) => T | Promise<T>, options?: O): Promise<T>
}

/** The one implementation of these methods, for any claim set. */
export class ClaimSetLock implements Lock<WriteGrant> {
  readonly #session: Session
  readonly #set: ClaimSet
  readonly #noun: string

  /** @param noun the kind of lock in messages, such as `mutex`. */
  constructor(session: Session, set: ClaimSet, noun: string) {
    this.#session = session
    this.#set = set
    this.#noun = noun
  }

  tryAcquire(options?: Omit<LockOptions, 'wait' | 'signal'>): Promise<WriteGrant | undefined> {
    try {
      const request = checkedTryOptions(options)
      const nested = this.#nested(request)
      if (nested) return Promise.resolve(nested)
      return Promise.resolve(this.#session.attempt(this.#queue(), request))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async isLocked(): Promise<boolean> {
    const isTaken = this.#set.claims.map(async claim => {
      const requests = await this.#session.submit({ type: 'inspect', prefix: claim.key, exact: true })
      const ahead = new Ahead()
      for (const other of requests) ahead.add(other.claim)
      return !ahead.admits(claim)
    })
    return (await Promise.all(isTaken)).includes(true)
  }

  acquire(options?: LockOptions): Promise<WriteGrant> {
    try {
      const request = checkedOptions(options)
      const nested = this.#nested(request)
      return nested ? Promise.resolve(nested) : this.#acquire(request)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async run<T>(task: (grant: WriteGrant) => T | Promise<T>, options?: LockOptions): Promise<T> {
    let nested: WriteGrant | undefined
    let grant: LocalGrant | undefined
    try {
      if (typeof task !== 'function')
        throw new InvalidArgumentError(`the task of run must be a function, not ${shown(task)}`)
      const request = checkedOptions(options)
      nested = this.#nested(request)
      grant = nested ? undefined : await this.#acquire(request)
    } catch (error) {
      throw aboutTask(error, false)
    }
    // The outer run of the same task releases what a nested grant uses.
    if (!grant) return ownErrors(async () => task(nested!))
    const { deadlocks } = this.#session
    let result
    try {
      result = await (deadlocks ? deadlocks.run(this.#set, grant, async () => task(grant)) : task(grant))
    } catch (error) {
      // The task's own error says more than the error of the release.
      const isEnded = endedBy(grant.signal, error)
      await grant.release().catch(() => undefined)
      throw isEnded ? aboutTask(grant.signal.reason, true) : ofTask(error)
    }
    const { isHeld } = grant
    try {
      await grant.release()
    } catch (error) {
      // A grant that the engine gave up before its deadline may have been lost before the task ended. Any other failure
      // came after the task ended, and the lease ends the grant.
      if (error instanceof LostError && !(isHeld && grant.isOver)) throw lostBeforeEnd(error, result)
    }
    return result
  }

  #acquire(request: CheckedOptions): Promise<LocalGrant> {
    return this.#session.acquire(this.#queue(), request)
  }

  #nested(request: CheckedOptions): WriteGrant | undefined {
    if (!request.reentrant) return undefined
    const outer = this.#session.deadlocks?.covering(this.#set)
    return outer && new NestedGrant(outer)
  }

  #queue(): LocalQueue {
    return this.#session.queueFor(this.#set, this.#noun)
  }
}

/** Whether an error is what the end of a grant makes of a task: the signal's own reason, or that of a wait for it. */
function endedBy({ reason }: AbortSignal, error: unknown): boolean {
  if (reason === undefined) return false
  return error === reason || (error instanceof Error && error.name === 'AbortError' && error.cause === reason)
}

/** Calls a task and marks its errors as the task's own. */
async function ownErrors<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (error) {
    throw ofTask(error)
  }
}

/** A further grant of what the task already holds. Releasing it leaves the outer grant held. */
class NestedGrant implements WriteGrant {
  readonly #outer: LocalGrant

  constructor(outer: LocalGrant) {
    this.#outer = outer
  }

  get token(): bigint {
    return this.#outer.token
  }

  get keys(): readonly string[] {
    return this.#outer.keys
  }

  get signal(): AbortSignal {
    return this.#outer.signal
  }

  assertHeld(): void {
    this.#outer.assertHeld()
  }

  fence(transaction: object): Promise<void> {
    return this.#outer.fence(transaction)
  }

  expiresIn(): number {
    return this.#outer.expiresIn()
  }

  async release(): Promise<void> {
    // Only the outermost run releases.
  }

  async downgrade(): Promise<void> {
    throw new InvalidArgumentError("can't downgrade a nested grant while the outer grant is held")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
