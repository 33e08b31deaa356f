import type { Clock } from '../base/clock.js'
import type { LockEvent } from '../base/diagnostics.js'
import type { Claim } from '../engine/claim.js'
import type { Awaitable, LockRequest, ReadSet } from '../engine/contract.js'
import { AbortedError, TimedOutError, type Holder } from '../base/errors.js'
import { Waiters, type WaitersOwner } from '../base/waiters.js'
import type { ClaimSet } from './claims.js'
import type { LocalGrant } from './grant.js'
import { Leases, LockWaiter, type LeaseCallers } from './leases.js'
import { LockErrors } from './lock-errors.js'
import { LockEvents } from './lock-events.js'
import type { AcquireTerms } from './lock-options.js'
import {
  isStatus,
  type Answer,
  type HeldStatus,
  type PendingRequest,
  type QueueSession,
  type RequestOwner,
} from './pending-request.js'
import { Requests } from './requests.js'

/** The wait sent to the engine when a wait has passed but its timer is late. 0 would mean not to queue at all. */
const MIN_WAIT = 1

/**
 * The queue of all local callers with the same claim set. It sends {@link Requests} to the engine for them, unless it
 * has an exclusive lease itself, and gives them its {@link Leases}.
 */
export class LocalQueue implements LeaseCallers, RequestOwner, WaitersOwner<LockWaiter> {
  readonly clock: Clock
  readonly errors: LockErrors
  readonly events: LockEvents
  readonly leases: Leases
  readonly #requests: Requests
  readonly #session: QueueSession
  readonly #waiters: Waiters<LockWaiter>
  /** The latest end of a wait among all waiters since the queue was last empty: clock time. */
  #waitsUntil = -Infinity

  constructor(
    session: QueueSession,
    readonly set: ClaimSet,
    noun: string,
  ) {
    this.#session = session
    this.clock = session.clock
    this.#waiters = new Waiters(session.clock, this)
    this.events = new LockEvents(session, set)
    this.errors = new LockErrors(noun, set.title, session.engine.name)
    const places = Math.min(...set.claims.map(placesOf))
    this.#requests = new Requests(session, this, set.claims, places < Infinity)
    this.leases = new Leases(session, set, places, this.events, this.errors, this.#requests, this)
  }

  get first(): LockWaiter | undefined {
    return this.#waiters.first
  }

  get waiting(): boolean {
    return this.first !== undefined
  }

  get idle(): boolean {
    return !this.first && this.#requests.size === 0 && this.leases.idle
  }

  longestWait(): number {
    return Math.max(this.#waitsUntil - this.clock.now(), MIN_WAIT)
  }

  wantedRead(): ReadSet | undefined {
    return this.first?.request.read
  }

  get order(): number {
    return this.#requests.oldest?.order ?? Infinity
  }

  attempt(request: AcquireTerms, event?: LockEvent): Awaitable<LocalGrant | undefined> {
    const refusal = this.#session.refusal()
    if (refusal) throw refusal
    const spare = this.leases.fromSpare(request, event)
    if (spare) return spare
    if (this.first || this.leases.areTaken()) return undefined
    const asked = this.#requests.create(request.label)
    const sentAt = this.clock.now()
    const decided = (status: Answer): LocalGrant | undefined => {
      if (status?.state !== 'held') {
        if (status?.state === 'mismatch') throw this.errors.mismatch(status.key, status.max)
        if (isStatus(status)) return undefined
        const error = this.errors.unknownStatus(status)
        this.#requests.cancelFailed(asked, request.lease, error)
        throw error
      }
      // A grant of a session that has ended in the meantime ends with it.
      // mutant: grant-after-close
      if (this.#session.ending) throw this.#session.ending
      const lease = this.leases.begin(status, asked, sentAt, request, this.clock.now())
      return lease && this.leases.give(lease, 0, request, sentAt, status.read, event)
    }
    const status = this.#enqueue(asked, request, 0)
    if (!(status instanceof Promise)) return decided(status)
    let isDoubted = false
    this.#session.expectHints(asked.id, {
      queue: this,
      wake: () => undefined,
      lost: () => void (isDoubted = true),
    })
    const answered = (answer: Answer): LocalGrant | undefined => {
      this.#session.forgetHints(asked.id)
      const grant = decided(answer)
      if (grant && isDoubted) this.#session.keeper.verify(grant.lease)
      return grant
    }
    return status.then(answered, (error: unknown) => {
      this.#session.forgetHints(asked.id)
      this.#requests.cancelFailed(asked, request.lease, error)
      throw this.errors.failed(error)
    })
  }

  acquire(request: AcquireTerms, event?: LockEvent): Promise<LocalGrant> {
    const refusal = this.#session.refusal()
    if (refusal) return Promise.reject(refusal)
    if (request.signal?.aborted) return Promise.reject(this.errors.aborted(request.signal))
    const spare = this.leases.fromSpare(request, event)
    if (spare) return Promise.resolve(spare)
    const { before } = request
    if (before) return this.#queueUp(request, () => void before.then(() => this.#askLate()), event)
    if (this.first || !this.#mayRequest()) return this.#queueUp(request, () => this.pump(), event)
    const asked = this.#requests.create(request.label)
    const sentAt = this.clock.now()
    const answer = this.#enqueue(asked, request, request.wait)
    // Fast path for a free lock on an engine in this process: no waiter and no pending request.
    if (!(answer instanceof Promise) && answer?.state === 'held') {
      const lease = this.leases.begin(answer, asked, sentAt, request, sentAt)!
      return Promise.resolve(this.leases.give(lease, 0, request, sentAt, answer.read, event))
    }
    const follow = (): void => this.#requests.add(asked, request.lease, request.wait, sentAt).follow(answer)
    return this.#queueUp(request, follow, event)
  }

  /** Gives the lease to the first waiter, because the engine has granted the pending request. */
  granted(pending: PendingRequest, status: HeldStatus): void {
    const request = this.first?.request
    // mutant: lease-of-another
    if (request && request.lease !== pending.lease) return pending.askWith(request.lease)
    this.#requests.remove(pending)
    // mutant: keep-unused-grant
    if (!request) return pending.cancelInEngine()
    const lease = this.leases.begin(status, pending.request, pending.sentAt, request, this.clock.now())
    // Without a lease the grant came too late and was released, so the queue sends a new request.
    if (lease) {
      this.leases.serve(lease, status.read)
      if (pending.isDoubted) this.#session.keeper.verify(lease)
      this.#dropSurplusIfIdle()
    }
    this.pump()
  }

  /** Sends a new request for the waiters, behind all others, because the engine no longer has the pending one. */
  gone(pending: PendingRequest): void {
    this.#requests.remove(pending)
    this.pump(pending.retryUntil)
  }

  /** Rejects all waiters, unless another request of theirs is pending. Its grant or its failure ends their wait. */
  requestFailed(pending: PendingRequest, error: Error): void {
    this.#requests.remove(pending)
    if (this.#requests.size === 0) this.failAll(error)
  }

  failAll(error: Error): void {
    // A box that drains still has a session, so an abandoned request would block the requests behind it.
    this.#requests.dropAll()
    while (this.first) this.#refuse(this.first, error)
  }

  shift(): LockWaiter {
    const waiter = this.first!
    this.#waiters.remove(waiter)
    return waiter
  }

  /**
   * Sends requests for the first waiters, unless they are pending or a turn will reach the waiter.
   * @param retryUntil see {@link PendingRequest}; by default the deadline of the latest lease of this queue
   */
  pump(retryUntil = this.leases.latestDeadline): void {
    while (this.#waiters.callers > this.#requests.size && this.#mayRequest()) {
      const { request } = this.#firstUnasked()
      const wait = this.longestWait()
      const asked = this.#requests.create(request.label)
      const pending = this.#requests.add(asked, request.lease, wait, this.clock.now(), retryUntil)
      pending.follow(this.#enqueue(asked, request, wait))
    }
  }

  timeOver(now: number): void {
    while (this.#waiters.earliestDeadline <= now) this.#timedOut(this.#waiters.mostUrgent!)
    this.#waiters.setTimer(now)
  }

  aborted(waiter: LockWaiter, signal: AbortSignal): void {
    this.#leave(waiter, this.errors.aborted(signal))
  }

  /** The holder that the waiters wait for, as far as this box knows it. */
  knownHolder(): Holder | undefined {
    const { oldest } = this.#requests
    return oldest ? oldest.holder() : this.leases.holder()
  }

  /** Drops the newest requests that exceed the callers; an older one has an earlier place. */
  dropAllSurplus(): void {
    for (let newest = this.#newestSurplus(); newest; newest = this.#newestSurplus())
      this.#requests.drop(newest)
  }

  /** Puts a caller at the end of the queue, then calls `send`. */
  #queueUp(request: AcquireTerms, send: () => void, event: LockEvent | undefined): Promise<LocalGrant> {
    const mayEnd = request.wait < Infinity || request.signal !== undefined
    const waiting = new Promise<LocalGrant>((resolve, reject) => {
      const since = this.clock.now()
      const until = since + request.wait
      const waiter = new LockWaiter(request, since, resolve, reject, event)
      this.#waitsUntil = this.first ? Math.max(this.#waitsUntil, until) : until
      this.#waiters.add(waiter)
      send()
      // A waiter that was served at once, or has no limit, needs no timer. The timer of its request, or of the signs of
      // life, keeps the process alive. A waiter behind a local holder needs no timer: only that holder's release can
      // serve it.
      if (!waiter.isQueued || !mayEnd) return
      this.#waiters.limit(waiter, request.wait, until, request.signal)
      this.#waiters.setTimer()
    })
    return mayEnd ? tracedToCaller(waiting) : waiting
  }

  #mayRequest(): boolean {
    return !this.leases.areTaken(this.#requests.size) && this.#requests.mayAdd
  }

  /** The first waiter without a request. There must be one. */
  #firstUnasked(): LockWaiter {
    return this.#waiters.at(this.#requests.size)!
  }

  /** Sends the request of waiters that had to await something first, unless the box refuses requests by now. */
  #askLate(): void {
    const refusal = this.#session.refusal()
    if (refusal) this.failAll(refusal)
    else this.pump()
  }

  #enqueue(request: LockRequest, { lease, read, steal }: AcquireTerms, wait: number): Awaitable<Answer> {
    return this.#session.send({ type: 'enqueue', request, lease, wait, read, steal })
  }

  #timedOut(waiter: LockWaiter): void {
    this.#leave(waiter, this.errors.timedOut(waiter.request.wait, this.knownHolder()))
  }

  /** Removes a waiter. If fewer are left than requests, cancels the newest request. */
  #leave(waiter: LockWaiter, error: Error): void {
    this.#refuse(waiter, error)
    this.#dropSurplusIfIdle()
  }

  /** Stops the newest request if it is one too many, unless its answer is on its way. */
  #dropSurplusIfIdle(): void {
    const newest = this.#newestSurplus()
    // That answer serves the next caller. If none has come by then, its grant is released.
    if (newest?.isQueued || (newest && this.#session.engine.withdraw?.(newest.request)))
      this.#requests.drop(newest)
  }

  #newestSurplus(): PendingRequest | undefined {
    // mutant: leave-cancels-others
    return this.#requests.size > this.#waiters.callers ? this.#requests.newest : undefined
  }

  #refuse(waiter: LockWaiter, error: Error): void {
    this.#waiters.remove(waiter)
    waiter.reject(error)
  }
}

/** Maximum number of grants of a claim that hold at once. */
function placesOf(claim: Claim): number {
  if (claim.mode === 'permits') return Math.floor(claim.max / claim.permits)
  return claim.mode === 'shared' ? Infinity : 1
}

/**
 * Replaces the stack of an error that ends a wait by the stack of the caller, who awaits this. A timer or a listener
 * created the error, so its own stack does not lead to the caller.
 */
async function tracedToCaller<T>(waiting: Promise<T>): Promise<T> {
  try {
    return await waiting
  } catch (error) {
    if (error instanceof TimedOutError || error instanceof AbortedError) Error.captureStackTrace(error)
    throw error
  }
}
