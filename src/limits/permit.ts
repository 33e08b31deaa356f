import { aboutTask, InvalidArgumentError, ofTask, shown } from '../errors.js'
import type { Taken } from './counter.js'

/** Takes permits back. */
export interface PermitGiver {
  /** The use of a permit has ended. */
  released(): void
  /** A permit was not used, so that the limits need not count it either. Called before `released`. */
  unused(taken: Taken): void
}

/** Permission for `n` calls, from the moment it was granted. */
export class Permit implements Disposable {
  #giver: PermitGiver | undefined
  readonly #at: number
  readonly #mark: number
  readonly #epoch: number

  /** Permits come from limiters. */
  constructor(
    giver: PermitGiver,
    /** For how many calls it stands. */
    readonly n: number,
    at: number,
    mark: number,
    epoch: number,
  ) {
    this.#giver = giver
    this.#at = at
    this.#mark = mark
    this.#epoch = epoch
  }

  /**
   * Ends the call: where the limiter has a `concurrency`, another caller may begin. The limits count the permit all the
   * same. A second release is harmless.
   */
  release(): void {
    const giver = this.#giver
    this.#giver = undefined
    giver?.released()
  }

  /**
   * Says that the call was never sent: gives the permit back to the limits, too, and releases it. After a release it
   * does nothing.
   */
  refund(): void {
    const giver = this.#giver
    this.#giver = undefined
    giver?.unused({ n: this.n, at: this.#at, mark: this.#mark, epoch: this.#epoch })
    giver?.released()
  }

  [Symbol.dispose](): void {
    this.release()
  }
}

/** Acquires, calls the task, and releases. @throws what these throw; a `taskBegan` says which of them it was. */
export async function underPermit<T>(
  acquire: () => Promise<Permit>,
  task: (permit: Permit) => T | Promise<T>,
): Promise<T> {
  let permit
  try {
    if (typeof task !== 'function')
      throw new InvalidArgumentError(`the task of run must be a function, not ${shown(task)}`)
    permit = await acquire()
  } catch (error) {
    throw aboutTask(error, false)
  }
  try {
    return await task(permit)
  } catch (error) {
    throw ofTask(error)
  } finally {
    permit.release()
  }
}
