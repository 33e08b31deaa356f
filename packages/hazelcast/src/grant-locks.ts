import { IndeterminateError, UnavailableError } from 'signalbox'
import {
  heartbeatWithin,
  type CheckIn,
  type Enqueue,
  type ExtendOrYield,
  type Inspect,
  type LockRequest,
  type Operation,
  type OutcomeOf,
  type Renew,
  type RequestReport,
  type RequestStatus,
  type WaitTerms,
} from 'signalbox/engine'
import { AtMost } from './at-most.js'
import { failureOf } from './failures.js'
import type { HazelcastPlace } from './hazelcast-url.js'
import type { MemberLocks } from './member-locks.js'
import { exclusiveKeys, type OwnRequests } from './own-requests.js'

/**
 * Maximum number of grants whose locks are renewed at the same time. A renewal takes several calls. If a box with
 * thousands of grants sent them all at once, the replies would come too late, and retries would add to them.
 */
const RENEWED_AT_ONCE = 64

type Held = RequestStatus & { readonly state: 'held' }

/** Lets the entries of the keys decide an operation. */
type Decide = <O extends Operation>(operation: O) => Promise<OutcomeOf<O>>

/**
 * Executes operations. The entries of the keys decide between boxes. The exclusive keys of this box's grants are also
 * locked on the members, which excludes programs in other languages.
 */
export class GrantLocks {
  readonly #place: HazelcastPlace
  readonly #own: OwnRequests
  readonly #areFree: (keys: readonly string[]) => boolean
  readonly #left: (id: string) => Promise<unknown> | undefined
  readonly #watchUncontended: (request: LockRequest) => boolean
  readonly #locks: MemberLocks
  readonly #decide: Decide
  readonly #wake: (id: string) => void
  readonly #renewals = new AtMost(RENEWED_AT_ONCE)
  /** The locks of requests that will probably be granted, until that is decided. */
  readonly #early = new Map<string, Promise<boolean>>()

  /**
   * @param left settles when a committed request has left its keys.
   * @param wake is called with a request that has waited for other programs, once it has locked all its keys.
   */
  constructor(
    place: HazelcastPlace,
    own: OwnRequests,
    areFree: (keys: readonly string[]) => boolean,
    left: (id: string) => Promise<unknown> | undefined,
    watchUncontended: (request: LockRequest) => boolean,
    locks: MemberLocks,
    decide: Decide,
    wake: (id: string) => void,
  ) {
    this.#place = place
    this.#own = own
    this.#areFree = areFree
    this.#left = left
    this.#watchUncontended = watchUncontended
    this.#locks = locks
    this.#decide = decide
    this.#wake = wake
  }

  /**
   * Unlocks the keys of a request that is not granted at once. Does so before the request has its place in the queue,
   * because that takes several round trips from a distant box.
   */
  blocked(id: string): void {
    if (this.#early.delete(id)) void this.#locks.unlock(id)
  }

  /**
   * Locks the keys of a request that will probably be granted. Called in the tick in which a change of an entry is
   * sent: the client writes both to its connection at once, and a second write would cost as much as a call.
   */
  granting({ id, claims }: LockRequest, lease: number): void {
    const keys = exclusiveKeys(claims)
    if (keys.length === 0 || this.#early.has(id)) return
    const locking = this.#locks.tryLock(id, keys, lease)
    locking.catch(() => undefined)
    this.#early.set(id, locking)
  }

  /**
   * Called before a request joins the queues of several keys, which takes several round trips. If it will probably get
   * the keys, locks them.
   */
  standing({ type, request, lease }: Enqueue | CheckIn): void {
    const keys = exclusiveKeys(request.claims)
    if (type === 'checkIn' ? this.#own.isWoken(request.id) : this.#areFree(keys))
      this.granting(request, lease)
  }

  /** Unlocks the keys of a request while it is being removed. */
  releasing(id: string): void {
    void this.#locks.unlock(id)
  }

  async execute(operation: Operation): Promise<OutcomeOf<Operation>> {
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
        // A shared claim is not locked on the members.
        await this.#locks.unlock(operation.request.id)
        return isDone
      }
      case 'cancel':
      case 'release': {
        const { id } = operation.request
        const outcome = await this.#decide(operation).finally(() => this.releasing(id))
        await this.#locks.unlock(id)
        return outcome
      }
      case 'commit': {
        const { guard, release } = operation
        const outcome = await this.#decide(operation)
        // The caller need not wait. A later lock of this box may come before or after the unlock, because locks are
        // counted.
        if (guard && release && outcome.state === 'committed') void this.#unlockWritten(guard.request)
        return outcome
      }
      case 'inspect':
        return this.#inspect(operation)
      default:
        return this.#decide(operation)
    }
  }

  /** Unlocks the keys after a commit, so that other programs get them with the committed values. */
  async #unlockWritten({ id }: LockRequest): Promise<void> {
    await this.#left(id)?.catch(() => undefined)
    await this.#locks.unlock(id)
  }

  /**
   * Adds an unknown holder if the members have the key locked and its entry has no holder: another program has locked
   * it, or a box is just locking or unlocking it. Members do not list locked keys.
   */
  async #inspect(operation: Inspect): Promise<readonly RequestReport[]> {
    const { prefix: key, exact = false } = operation
    if (!exact) return this.#decide(operation)
    const locked = this.#locks.isLocked(key).catch((error: unknown) => {
      throw failureOf(error, this.#place, UnavailableError)
    })
    const [reports, isLocked] = await Promise.all([this.#decide(operation), locked])
    const isOwn = reports.some(({ phase, claim }) => phase !== 'waiting' && claim.mode === 'exclusive')
    if (!isLocked || isOwn) return reports
    const unknown = {
      session: '',
      host: '',
      pid: 0,
      label: undefined,
      number: 0,
      age: 0,
      expiresIn: Infinity,
    }
    return [{ key, claim: { key, mode: 'exclusive' }, phase: 'held', ...unknown }, ...reports]
  }

  async #acquire(operation: Enqueue | CheckIn): Promise<RequestStatus> {
    const { request } = operation
    const { id } = request
    try {
      const status = await this.#decide(operation)
      if (status.state === 'held') return await this.#lock(request, operation, status, this.#early.get(id))
      void this.#locks.unlock(id)
      return status
    } catch (error) {
      void this.#locks.unlock(id)
      throw error
    } finally {
      this.#early.delete(id)
    }
  }

  /** Locks the exclusive keys of a grant. While another program has one of them, reports that the request is queued. */
  async #lock(
    request: LockRequest,
    terms: WaitTerms,
    held: Held,
    locking?: Promise<boolean>,
  ): Promise<RequestStatus> {
    const { id, claims } = request
    const keys = exclusiveKeys(claims)
    if (keys.length === 0) return held
    if (await this.#orAbandon(request, locking ?? this.#locks.tryLock(id, keys, terms.lease))) return held
    if (terms.wait === 0) {
      await this.#decide({ type: 'cancel', request })
      await this.#locks.unlock(id)
      return { state: 'busy' }
    }
    this.#locks.wait(id, () => this.#wake(id))
    return { state: 'queued', id, place: 0, checkInAfter: heartbeatWithin(terms), sessionsAhead: [] }
  }

  async #extendOrYield(operation: ExtendOrYield): Promise<RequestStatus> {
    const { request, next, lease, wait } = operation
    const { id } = request
    const status = await this.#decide(operation)
    if (status.state !== 'held' || status.id !== id) {
      const unlocking = this.#locks.unlock(id)
      // The caller need not wait: the next request of a distant box must be claimed in time.
      if (status.state !== 'held') return status
      await unlocking
      return this.#lock(next, operation, status)
    }
    const kept = await this.#orAbandon(request, this.#locks.reuse(id, lease))
    if (kept === 'held') {
      // Members do not report that other programs wait, so this is valid only until these get their next chance.
      const isUncontended = this.#watchUncontended(request)
      return isUncontended ? { ...status, isUncontended } : status
    }
    this.#abandon(request)
    // If another program has taken a lock, the caller waits for it as for another box.
    return kept === 'lost'
      ? { state: 'gone' }
      : this.#acquire({ type: 'enqueue', request: next, lease, wait })
  }

  async #renew(operation: Renew): Promise<boolean> {
    const { request, lease } = operation
    if (!(await this.#decide(operation))) return false
    try {
      if (await this.#renewals.run(() => this.#locks.renew(request.id, lease))) return true
    } catch (error) {
      throw failureOf(error, this.#place, IndeterminateError)
    }
    const own = this.#own.get(request.id)
    // A downgrade has released the locks in the meantime.
    if (own && exclusiveKeys(own.claims).length === 0) return true
    this.#abandon(request)
    return false
  }

  /** Waits for the members. If they fail, abandons the grant. */
  async #orAbandon<T>(request: LockRequest, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      this.#abandon(request)
      throw failureOf(error, this.#place, IndeterminateError)
    }
  }

  #abandon(request: LockRequest): void {
    void this.#locks.unlock(request.id)
    this.#decide({ type: 'cancel', request }).catch(() => undefined)
  }
}
