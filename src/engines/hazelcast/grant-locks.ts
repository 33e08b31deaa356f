import {
  heartbeatWithin,
  type Enqueue,
  type ExtendOrYield,
  type LockRequest,
  type Operation,
  type OutcomeOf,
  type WaitTerms,
  type CheckIn,
  type Renew,
  type RequestStatus,
} from '../../engine/contract.js'
import { IndeterminateError } from '../../errors.js'
import { failureOf } from './failures.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import { LET_IN_AFTER, type MemberLocks } from './member-locks.js'
import { exclusiveKeys, type OwnRequests } from './own-requests.js'

type Held = RequestStatus & { readonly state: 'held' }

/** Has the lock table decide an operation. */
type Decide = <O extends Operation>(operation: O) => Promise<OutcomeOf<O>>

/**
 * Carries out operations: the lock table decides between boxes, and the exclusive keys of what it grants are locked
 * on the members, which excludes programs in other languages.
 */
export class GrantLocks {
  readonly #place: HazelcastPlace
  readonly #own: OwnRequests
  readonly #locks: MemberLocks
  readonly #decide: Decide
  readonly #wake: (id: string) => void

  /** @param wake is called with a request that has waited for other programs, and has locked all its keys. */
  constructor(
    place: HazelcastPlace,
    own: OwnRequests,
    locks: MemberLocks,
    decide: Decide,
    wake: (id: string) => void,
  ) {
    this.#place = place
    this.#own = own
    this.#locks = locks
    this.#decide = decide
    this.#wake = wake
  }

  async carryOut(operation: Operation): Promise<OutcomeOf<Operation>> {
    switch (operation.type) {
      case 'enqueue':
      case 'checkIn':
        return this.#acquire(operation)
      case 'extendOrYield':
        return this.#extendOrYield(operation)
      case 'renew':
        return this.#renew(operation)
      case 'downgrade': {
        const isDone = await this.#decide(operation)
        // A shared claim locks nothing on the members.
        await this.#locks.leave(operation.request.id)
        return isDone
      }
      case 'cancel':
      case 'release': {
        const leaving = this.#locks.leave(operation.request.id)
        const [outcome] = await Promise.all([this.#decide(operation), leaving])
        return outcome
      }
      case 'commit': {
        const { guard, release } = operation
        const outcome = await this.#decide(operation)
        // The caller need not wait: a later lock of this box reaches the member after the unlock.
        if (guard && release && outcome.state === 'committed') void this.#locks.leave(guard.request.id)
        return outcome
      }
      default:
        return this.#decide(operation)
    }
  }

  async #acquire(operation: Enqueue | CheckIn): Promise<RequestStatus> {
    const { request, lease } = operation
    const { id } = request
    // Where the table will probably grant the request, its locks travel together with the change of the record.
    const locking = this.#isLikely(operation)
      ? this.#locks.tryEnter(id, exclusiveKeys(request.claims), lease)
      : undefined
    locking?.catch(() => undefined)
    try {
      const status = await this.#decide(operation)
      if (status.state === 'held') return await this.#lock(request, operation, status, locking)
      void this.#locks.leave(id)
      return status
    } catch (error) {
      void this.#locks.leave(id)
      throw error
    }
  }

  #isLikely({ type, request: { id, claims } }: Enqueue | CheckIn): boolean {
    const keys = exclusiveKeys(claims)
    if (keys.length === 0) return false
    return type === 'checkIn' ? this.#own.get(id)?.phase === 'reserved' : this.#own.areFree(keys)
  }

  /** Locks the exclusive keys of a grant. While another program has one, the caller is told that it is queued. */
  async #lock(
    request: LockRequest,
    terms: WaitTerms,
    held: Held,
    locking?: Promise<boolean>,
  ): Promise<RequestStatus> {
    const { id, claims } = request
    const keys = exclusiveKeys(claims)
    if (keys.length === 0) return held
    if (await this.#orGiveUp(request, locking ?? this.#locks.tryEnter(id, keys, terms.lease))) return held
    if (terms.wait === 0) {
      await this.#decide({ type: 'cancel', request })
      await this.#locks.leave(id)
      return { state: 'busy' }
    }
    this.#locks.wait(id, () => this.#wake(id))
    return { state: 'queued', id, place: 0, lookAgain: heartbeatWithin(terms), behind: [] }
  }

  async #extendOrYield(operation: ExtendOrYield): Promise<RequestStatus> {
    const { request, next, lease, wait } = operation
    const { id } = request
    const status = await this.#decide(operation)
    if (status.state !== 'held' || status.id !== id) {
      await this.#locks.leave(id)
      return status.state === 'held' ? this.#lock(next, operation, status) : status
    }
    const kept = await this.#orGiveUp(request, this.#locks.handOn(id, lease))
    if (kept === 'held') {
      // Other programs are not heard of, so no longer than until they are let in again.
      const isUncontended = this.#own.watchAlone(id, LET_IN_AFTER)
      return isUncontended ? { ...status, isUncontended } : status
    }
    this.#giveUp(request)
    // Another program has the lock. The caller waits for that program as for another box.
    return kept === 'lost'
      ? { state: 'gone' }
      : this.#acquire({ type: 'enqueue', request: next, lease, wait })
  }

  async #renew(operation: Renew): Promise<boolean> {
    const { request, lease } = operation
    if (!(await this.#decide(operation))) return false
    try {
      if (await this.#locks.renew(request.id, lease)) return true
    } catch (error) {
      throw failureOf(error, this.#place, IndeterminateError)
    }
    const own = this.#own.get(request.id)
    // A downgrade meanwhile has given the locks back.
    if (own && exclusiveKeys(own.claims).length === 0) return true
    this.#giveUp(request)
    return false
  }

  /** The answer of the members; without one the grant is given up. */
  async #orGiveUp<T>(request: LockRequest, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      this.#giveUp(request)
      throw failureOf(error, this.#place, IndeterminateError)
    }
  }

  #giveUp(request: LockRequest): void {
    void this.#locks.leave(request.id)
    this.#decide({ type: 'cancel', request }).catch(() => undefined)
  }
}
