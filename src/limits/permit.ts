import { withTaskBegan, taskError } from '../base/errors.js'
import { checkTask } from '../base/options.js'
import type { Taken } from './counter.js'

/** The limiter of a permit, as far as the permit needs it. */
export interface PermitGiver {
  /** Called when a permit is released; undefined if the number of permits in use is not limited. */
  released?(): void
  /** Called before `released` if a permit was not used, so that the limits don't count it. */
  unused(taken: Taken): void
}

/** A permit for `n` calls, valid from the moment of its grant. */
export class Permit implements Disposable {
  #giver: PermitGiver | undefined
  readonly #at: number
  readonly #mark: number
  readonly #epoch: number

  /** Created by a limiter. */
  constructor(
    giver: PermitGiver,
    /** Number of calls that it permits. */
    readonly n: number,
    at = 0,
    mark = 0,
    epoch = 0,
  ) {
    this.#giver = giver
    this.#at = at
    this.#mark = mark
    this.#epoch = epoch
  }

  /**
   * Ends the use of the permit. If the limiter has a `concurrency`, another caller may begin. The limits still count
   * the permit. A second release is harmless.
   */
  release(): void {
    const giver = this.#giver
    this.#giver = undefined
    giver?.released?.()
  }

  /**
   * Releases the permit of a call that was never sent, so that the limits don't count it either. After a release it
   * does nothing.
   */
  refund(): void {
    this.#giver?.unused({ n: this.n, at: this.#at, mark: this.#mark, epoch: this.#epoch })
    this.release()
  }

  [Symbol.dispose](): void {
    this.release()
  }
}

/** Acquires a permit, calls the task, and releases the permit. @throws as `Limiter.run` */
export async function underPermit<T>(
  acquire: () => Promise<Permit>,
  task: (permit: Permit) => T | Promise<T>,
): Promise<T> {
  let permit
  try {
    checkTask('run', task, 'run(task, n, options)')
    permit = await acquire()
  } catch (error) {
    throw withTaskBegan(error, false)
  }
  try {
    return await task(permit)
  } catch (error) {
    throw taskError(error)
  } finally {
    permit.release()
  }
}
