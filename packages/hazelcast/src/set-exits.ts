import { DamagedValueError, IndeterminateError, UnavailableError } from 'signalbox'
import type { Clock, LockRequest } from 'signalbox/engine'
import type { Decide, Decisions } from './decisions.js'
import type { Decided } from './key-entry.js'
import { homeOf } from './open-entry.js'
import type { OwnSet } from './own-set.js'
import { othersOf } from './set-rules.js'
import type { WaitingRoom } from './waiting-room.js'

/**
 * Time for which a set with an unknown commit is remembered, in milliseconds. After that, no attempt to leave follows.
 */
const UNCLEAR_FOR = 600_000

/** Lets sets of this box leave their keys. A set that may have committed is not undone. */
export class SetExits {
  readonly #decisions: Decisions
  readonly #room: WaitingRoom
  readonly #apply: (home: string, decided: Decided) => Promise<void>
  readonly #clock: Clock
  /** The sets that may have committed. */
  readonly #unclear = new Map<string, 'underway' | 'unknown'>()

  /** @param apply writes a commit to its other keys. */
  constructor(
    decisions: Decisions,
    room: WaitingRoom,
    apply: (home: string, decided: Decided) => Promise<void>,
    clock: Clock,
  ) {
    this.#decisions = decisions
    this.#room = room
    this.#apply = apply
    this.#clock = clock
  }

  /** Call before a commit of the set is decided. */
  committing(id: string): void {
    if (!this.#unclear.has(id)) this.#unclear.set(id, 'underway')
  }

  /** Call when a commit has released the set. */
  committed(id: string): void {
    this.#unclear.delete(id)
  }

  /** Call when a commit of the set was rejected. An earlier one may still be applied. */
  refused(id: string): void {
    if (this.#unclear.get(id) === 'underway') this.#unclear.delete(id)
  }

  /** Call when it stays unknown whether a commit of the set was decided. */
  undecided(id: string): void {
    this.#unclear.set(id, 'unknown')
    this.#clock.after(UNCLEAR_FOR, () => this.#unclear.delete(id), false)
  }

  /** Leaves the keys of a set whose enqueue failed. Returns the error for its caller. */
  async abandoned({ request }: OwnSet, error: unknown): Promise<unknown> {
    const leaving = await Promise.allSettled([
      this.#room.leave(request),
      ...request.claims.map(({ key }) =>
        this.#decisions.at(key, (state, machine, now) => {
          state.withdraw(request.id)
          machine.decide({ type: 'sweepExpired', keys: [key] }, now)
        }),
      ),
    ])
    // A damaged entry has no request of this box.
    const isLeft = leaving.every(
      each => each.status === 'fulfilled' || each.reason instanceof DamagedValueError,
    )
    if (isLeft || !(error instanceof UnavailableError)) return error
    return new IndeterminateError(error.message, { engine: error.engine, cause: error })
  }

  async leaveKeys(set: Pick<OwnSet, 'request' | 'number'>): Promise<void> {
    await this.leave(set, (state, machine, now) => {
      state.withdraw(set.request.id)
      machine.decide({ type: 'sweepExpired', keys: [state.key] }, now)
    })
  }

  /** Leaves the home and the other keys at the same time, unless the home may have decided a commit. */
  async leave<T>({ request, number }: Pick<OwnSet, 'request' | 'number'>, leaveHome: Decide<T>): Promise<T> {
    // mutant: unclear-commit-undone
    if (!this.#unclear.has(request.id)) {
      const [left] = await Promise.all([this.#atHome(request, leaveHome), this.#leaveOthers(request, number)])
      return left
    }
    const { left, decided } = await this.#atHome(request, (state, machine, now) => ({
      decided: state.decided.find(({ id }) => id === request.id),
      left: leaveHome(state, machine, now),
    }))
    if (decided) await this.#apply(homeOf(request.claims), decided)
    else await this.#leaveOthers(request, number)
    return left
  }

  async #leaveOthers(request: LockRequest, number: number): Promise<void> {
    await Promise.all(
      othersOf(request).map(({ key }) =>
        this.#decisions.at(key, (state, machine, now) => {
          if (!state.part(request.id)) return
          state.raiseNumber(number)
          machine.decide({ type: 'cancel', request }, now)
        }),
      ),
    )
  }

  #atHome<T>({ claims }: LockRequest, decide: Decide<T>): Promise<T> {
    return this.#decisions.at(homeOf(claims), decide)
  }
}
