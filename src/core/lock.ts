import {
  withTaskBegan,
  InvalidArgumentError,
  LostError,
  lostBeforeEnd,
  taskError,
  type Holder,
} from '../base/errors.js'
import { checkTask } from '../base/options.js'
import { printedAs } from '../base/printed.js'
import { needsReceiver } from '../base/receiver.js'
import { Ahead } from '../engine/claim.js'
import type { Session } from './session.js'
import type { ClaimSet } from './claims.js'
import { DelegatingGrant } from './delegating-grant.js'
import type { Grant, LocalGrant, WriteGrant } from './grant.js'
import { LocalQueue } from './local-queue.js'
import { checkedOptions, checkedTryOptions, type CheckedOptions, type LockOptions } from './lock-options.js'

/** The methods of every lock, the same for all kinds of locks and all engines. */
export interface Lock<G extends Grant = Grant, O extends LockOptions = LockOptions> {
  /**
   * Returns the grant if the lock is free and has no waiter, else undefined. Never waits for a holder or waiter.
   * @throws InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  tryAcquire(options?: Omit<O, 'wait' | 'signal'>): Promise<G | undefined>
  /**
   * Returns whether `tryAcquire` would return undefined now, because of a holder or waiter in any process. Another
   * caller may acquire or release the lock before this call returns.
   * @throws UnavailableError, ClosedError; IndeterminateError when the engine did not reply
   */
  isLocked(): Promise<boolean>
  /**
   * Waits for the lock, and returns the grant. Callers are served in the order of their requests, with two exceptions:
   * callers of one box may pass the lock among themselves, for up to 16 turns or 5 ms, before other boxes get it, and
   * readers of one box that wait together get it together.
   * @throws TimedOutError when `wait` has passed (BusyError for a wait of 0), AbortedError, DeadlockError,
   * InvalidArgumentError, UnavailableError, IndeterminateError, ClosedError
   */
  acquire(options?: O): Promise<G>
  /**
   * Acquires the lock, calls `task`, releases the lock, and returns the task's result. If the release fails, it still
   * returns the result: the grant ends when its lease expires, and the channel `signalbox:lock:release-failed` reports
   * the error.
   * @throws what `acquire` throws, with `taskBegan` false; what the task throws; LostError with `taskBegan` true when
   * the loss of the grant ended the task, through `grant.signal` or `assertHeld`; LostError with `taskEnded` and
   * `result` when the task succeeded but its grant had been lost.
   */
  run<T>(task: (grant: G) => T | Promise<T>, options?: O): Promise<T>
}

export class ClaimSetLock implements Lock<WriteGrant> {
  readonly #session: Session
  readonly #set: ClaimSet
  readonly #noun: string

  static {
    needsReceiver(this)
    printedAs(this, 'Lock', lock => ({
      kind: lock.#noun,
      claims: lock.#set.claims,
      engine: lock.#session.engine.name,
    }))
  }

  /** @param noun names the kind of lock in error messages, such as `mutex`. */
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
      return Promise.resolve(this.#session.attempt(this.#queue(request), request))
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
      checkTask('run', task, 'run(task, options)')
      const request = checkedOptions(options)
      nested = this.#nested(request)
      grant = nested ? undefined : await this.#acquire(request)
    } catch (error) {
      throw withTaskBegan(error, false)
    }
    // The outer run, whose grant a nested grant uses, releases it.
    if (!grant) return ownErrors(async () => task(nested!))
    const { deadlocks } = this.#session
    let result
    try {
      result = await (deadlocks ? deadlocks.run(this.#set, grant, async () => task(grant)) : task(grant))
    } catch (error) {
      // If the release fails too, the task's error is the more useful one.
      const isEnded = endedBy(grant.signal, error)
      await grant.release().catch(() => undefined)
      throw isEnded ? withTaskBegan(grant.signal.reason, true) : taskError(error)
    }
    const { isHeld } = grant
    try {
      await grant.release()
    } catch (error) {
      // Report a LostError unless the lease was valid when the task ended and merely expired during the release. After
      // any other error, the grant ends when its lease expires.
      if (error instanceof LostError && !(isHeld && grant.isPastDeadline)) throw lostBeforeEnd(error, result)
    }
    return result
  }

  /** The holder that the callers of this box wait for, as far as it is known without a request to the engine. */
  knownHolder(): Holder | undefined {
    return this.#session.queueFor(this.#set, this.#noun).knownHolder()
  }

  #acquire(request: CheckedOptions): Promise<LocalGrant> {
    return this.#session.acquire(this.#queue(request), request)
  }

  #nested(request: CheckedOptions): WriteGrant | undefined {
    if (!request.reentrant) return undefined
    const outer = this.#session.deadlocks?.covering(this.#set)
    return outer && new NestedGrant(outer)
  }

  /** @throws InvalidArgumentError when the keys can't be taken from their holders */
  #queue({ ownRequest, steal }: CheckedOptions): LocalQueue {
    if (steal) this.#checkSteal()
    // A request that steals must not wait for a caller of this box.
    if (ownRequest || steal) return new LocalQueue(this.#session, this.#set, this.#noun)
    return this.#session.queueFor(this.#set, this.#noun)
  }

  #checkSteal(): void {
    const { engine } = this.#session
    if (!engine.canSteal)
      throw new InvalidArgumentError(`${engine.name} has no locks with the option steal`, {
        engine: engine.name,
      })
    if (this.#set.claims.some(({ mode }) => mode !== 'exclusive'))
      throw new InvalidArgumentError('steal needs exclusive claims', { key: this.#set.title })
  }
}

/** Whether the task failed because its grant ended: it threw the signal's reason, or an AbortError caused by it. */
function endedBy({ reason }: AbortSignal, error: unknown): boolean {
  if (reason === undefined) return false
  return error === reason || (error instanceof Error && error.name === 'AbortError' && error.cause === reason)
}

/** Calls a task, and marks the errors that it throws as its own. */
async function ownErrors<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (error) {
    throw taskError(error)
  }
}

/** A grant of claims that the task already holds. Releasing it leaves the outer grant held. */
class NestedGrant extends DelegatingGrant implements WriteGrant {
  async release(): Promise<void> {
    // Only the outermost run releases.
  }

  async downgrade(): Promise<void> {
    throw new InvalidArgumentError("can't downgrade a nested grant while the outer grant is held")
  }
}
