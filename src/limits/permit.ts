import { withTaskBegan, taskError } from '../base/errors.js'
import { checkTask } from '../base/options.js'
import type { Cost } from '../engine/limits/cost.js'
import type { Taken } from './counter.js'
import type { Amounts, CostRules } from './costs.js'

/** The limiter of a permit, as far as the permit needs it. */
export interface PermitGiver {
  readonly costs: CostRules
  /** Called when a permit is released; undefined if the number of permits in use is not limited. */
  released?(): void
  /** Called before `released` if a permit was not used, so that the limits don't count it. */
  unused(taken: Taken): void
  /** Called with the change of the amounts of a permit, of which one is not 0, and the settled amounts. */
  settled(taken: Taken, change: readonly number[], amounts: Amounts): void
}

/** A permit for one or several calls, valid from the moment of its grant. */
export class Permit implements Disposable {
  readonly #giver: PermitGiver
  #state: 'used' | 'released' | 'refunded' = 'used'
  /** What counts at the time of the grant. */
  #cost: Cost
  /** The amounts that count since they were settled. */
  #excess: readonly number[] | undefined
  readonly #at: number
  readonly #mark: number
  readonly #epoch: number

  /** Created by a limiter. */
  constructor(giver: PermitGiver, cost: Cost, at = 0, mark = 0, epoch = 0) {
    this.#giver = giver
    this.#cost = cost
    this.#at = at
    this.#mark = mark
    this.#epoch = epoch
  }

  /** Number of calls that it permits. */
  get n(): number {
    return this.#cost.n
  }

  /**
   * Reports the amounts that the calls have used, which may differ from the estimates that the permit was requested
   * with. Others get unused amounts at once. Amounts above the estimates count from now on: the next permits come when
   * the limit allows them again. A unit that is left out keeps its amount. It may be called again with other amounts,
   * but what has been reported above an estimate stays counted. It may be called after `release`; after `refund` it does
   * nothing.
   * @param amounts such as `{ tokens: 700 }`: integers from 0 to a billion, of units other than calls.
   * @throws InvalidArgumentError
   */
  settle(amounts: Amounts): void {
    const settled = this.#giver.costs.settled(amounts)
    if (this.#state === 'refunded') return
    const { n, amounts: kept = [] } = this.#cost
    const excess = this.#excess ?? kept.map(() => 0)
    // No more can be given back than still counts at the time of the grant.
    const change = kept.map((amount, place) =>
      Math.max((settled[place] ?? amount + excess[place]!) - amount - excess[place]!, -amount),
    )
    if (!change.some(Boolean)) return
    this.#giver.settled(this.#taken, change, amounts)
    this.#cost = { n, amounts: kept.map((amount, place) => amount + Math.min(change[place]!, 0)) }
    this.#excess = excess.map((amount, place) => amount + Math.max(change[place]!, 0))
  }

  /**
   * Ends the use of the permit. If the limiter has a `concurrency`, another caller may begin. The limits still count
   * the permit. A second release is harmless.
   */
  release(): void {
    if (this.#state !== 'used') return
    this.#state = 'released'
    this.#giver.released?.()
  }

  /**
   * Releases the permit of a call that was never sent, so that the limits don't count it either. After a release it
   * does nothing.
   */
  refund(): void {
    if (this.#state !== 'used') return
    this.#giver.unused(this.#taken)
    this.release()
    this.#state = 'refunded'
  }

  get #taken(): Taken {
    return { cost: this.#cost, at: this.#at, mark: this.#mark, epoch: this.#epoch }
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
