import type { Clock } from '../clock.js'
import type { LockEvent } from '../diagnostics.js'
import { sharedClaims, type Claim } from '../engine/claim.js'
import type {
  Awaitable,
  Engine,
  LockRequest,
  ReadOutcome,
  ReadSet,
  SessionInfo,
  SqlTransaction,
} from '../engine/contract.js'
import { AbortedError, TimedOutError, UnavailableError, type Holder, type LostError } from '../errors.js'
import { Waiters, type WaitersOwner } from '../waiters.js'
import type { ClaimSet } from './claims.js'
import { LocalGrant, type GrantOwner } from './grant.js'
import { Lease, type LeaseOwner } from './lease.js'
import type { LeaseKeeper } from './lease-keeper.js'
import { LockErrors } from './lock-errors.js'
import { LockEvents } from './lock-events.js'
import type { AcquireRequest } from './lock-options.js'
import { LockWaiter } from './lock-waiter.js'
import {
  PendingRequest,
  isStatus,
  type Answer,
  type HeldStatus,
  type RequestOwner,
  type RequestSession,
} from './pending-request.js'
import { runtimeTimers } from '../runtime-timers.js'

/** The wait sent to the engine when a wait has passed but its timer is late. 0 would mean not to queue at all. */
const MIN_WAIT = 1
/** Maximum number of requests of a queue for permits that the engine has not yet granted. */
const MAX_PENDING = 128

/** The session of a local queue, as far as the queue needs it. */
export interface QueueSession extends RequestSession {
  readonly id: string
  /** The process of the box. */
  readonly member: SessionInfo
  readonly engine: Engine
  readonly keeper: LeaseKeeper
  /** Set once the session has ended. */
  readonly ending: Error | undefined
  /** Why new requests are refused; undefined when they are accepted. */
  refusal(): Error | undefined
  /** A request ID that no other request ever had. */
  nextRequest(): string
  /** Passes wake-ups for this request to this queue, until {@link forgetWake}. */
  expectWake(id: string, queue: LocalQueue): void
  forgetWake(id: string): void
  /** Counts a lease as in use, until {@link finished}. */
  began(): void
  finished(): void
}

/**
 * The queue of all local callers with the same claim set. It has at most one request in the engine's queue, and none
 * while it has an exclusive lease itself. Its callers use a lease one after another, each for a turn. Readers that wait
 * when a lease is granted use it together. A queue for permits has a request for each of its callers until the engine
 * queues one of them, because then the others would wait, too.
 */
export class LocalQueue implements GrantOwner, LeaseOwner, RequestOwner, WaitersOwner<LockWaiter> {
  readonly clock: Clock
  readonly keeper: LeaseKeeper
  /** Publishes events about its requests and grants. */
  readonly events: LockEvents
  readonly errors: LockErrors
  readonly #session: QueueSession
  /** Whether a lease can be passed on to the next caller. A shared one would block a writer that came earlier. */
  readonly #canPassOn: boolean
  /** Whether a lease of this claim set excludes all others. */
  readonly #isExclusive: boolean
  /** Maximum number of leases that this queue can have at once. Infinity if all claims are shared. */
  readonly #places: number
  readonly #waiters: Waiters<LockWaiter>
  /** The latest end of a wait among all waiters since the queue was last empty: clock time. */
  #waitsUntil = -Infinity
  /** The requests that the engine has not granted, oldest first. More than one only for permits. */
  readonly #pending: PendingRequest[] = []
  /** The requests that were reported as lost before their grants were known here. */
  readonly #lostEarly = new Set<string>()
  /** Number of leases in use. */
  #leases = 0
  /** The lease that the engine granted last; it may have ended. */
  #latest: Lease | undefined
  /** Number of leases in use that were downgraded, and so admit other holders. */
  #downgraded = 0
  /** A lease that its last user has released, kept for the next local caller. */
  #spare: Lease | undefined

  constructor(
    session: QueueSession,
    readonly set: ClaimSet,
    noun: string,
  ) {
    this.#session = session
    this.clock = session.clock
    this.keeper = session.keeper
    this.#waiters = new Waiters(session.clock, this)
    this.events = new LockEvents(session, set)
    this.errors = new LockErrors(noun, set.title, session.engine.name)
    this.#canPassOn = !set.claims.some(claim => claim.mode === 'shared')
    this.#isExclusive = set.claims.some(claim => claim.mode === 'exclusive')
    this.#places = Math.min(...set.claims.map(placesOf))
  }

  get keys(): readonly string[] {
    return this.set.claims.map(claim => claim.key)
  }

  get waiting(): boolean {
    return this.#waiters.first !== undefined
  }

  get idle(): boolean {
    return !this.#waiters.first && this.#pending.length === 0 && this.#leases === 0 && !this.#spare
  }

  /** How much longer the local callers wait at most, in milliseconds. */
  longestWait(): number {
    return Math.max(this.#waitsUntil - this.clock.now(), MIN_WAIT)
  }

  wantedRead(): ReadSet | undefined {
    return this.#waiters.first?.request.read
  }

  /** Of two waiting queues, the one with the lower order sent its request first. Infinity if it has no request. */
  get order(): number {
    return this.#pending[0]?.order ?? Infinity
  }

  /** The grant if it is available without waiting, else undefined. */
  attempt(request: AcquireRequest, event?: LockEvent): Awaitable<LocalGrant | undefined> {
    const refusal = this.#session.refusal()
    if (refusal) throw refusal
    const spare = this.#fromSpare(request, event)
    if (spare) return spare
    if (this.#waiters.first || this.#taken()) return undefined
    const asked = this.#newRequest(request.label)
    const sentAt = this.clock.now()
    const decided = (status: Answer): LocalGrant | undefined => {
      if (status?.state !== 'held') {
        if (status?.state === 'mismatch') throw this.errors.mismatch(status.key, status.max)
        if (isStatus(status)) return undefined
        const error = this.errors.unknownStatus(status)
        this.#forget(asked, request.lease, error)
        throw error
      }
      // A grant of a session that has ended in the meantime ends with it.
      // mutant: grant-after-close
      if (this.#session.ending) throw this.#session.ending
      const lease = this.#leaseFrom(status, asked, sentAt, request)
      return lease && this.#give(lease, 0, request, sentAt, status.read, event)
    }
    const status = this.#enqueue(asked, request, 0)
    if (!(status instanceof Promise)) return decided(status)
    this.#session.expectWake(asked.id, this)
    const answered = (answer: Answer): LocalGrant | undefined => {
      const isDoubted = this.#forgetWake(asked.id)
      const grant = decided(answer)
      if (grant && isDoubted) this.keeper.verify(grant.lease)
      return grant
    }
    return status.then(answered, (error: unknown) => {
      this.#forgetWake(asked.id)
      this.#forget(asked, request.lease, error)
      throw this.errors.failed(error)
    })
  }

  /** Waits for the caller's turn, and returns the grant. */
  acquire(request: AcquireRequest, event?: LockEvent): Promise<LocalGrant> {
    const refusal = this.#session.refusal()
    if (refusal) return Promise.reject(refusal)
    if (request.signal?.aborted) return Promise.reject(this.errors.aborted(request.signal))
    const spare = this.#fromSpare(request, event)
    if (spare) return Promise.resolve(spare)
    const { before } = request
    if (before) return this.#queueUp(request, () => void before.then(() => this.#askLate()), event)
    if (this.#waiters.first || !this.#mayRequest()) return this.#queueUp(request, () => this.#pump(), event)
    const asked = this.#newRequest(request.label)
    const sentAt = this.clock.now()
    const answer = this.#enqueue(asked, request, request.wait)
    // Fast path for a free lock on an engine in this process: no waiter and no pending request.
    if (!(answer instanceof Promise) && answer?.state === 'held') {
      const lease = this.#begin(answer, asked, sentAt, request, sentAt)
      return Promise.resolve(this.#give(lease, 0, request, sentAt, answer.read, event))
    }
    const follow = (): void => this.#startRequest(asked, request.lease, request.wait, sentAt).follow(answer)
    return this.#queueUp(request, follow, event)
  }

  /** The engine may have reserved the keys for this queue's request. */
  wake(id: string): void {
    this.#pending.find(({ request }) => request.id === id)?.wake()
  }

  /** Handles a hint that the request, or the grant whose reply is still on its way, is lost. */
  lost(id: string): void {
    // mutant: early-loss-forgotten
    this.#lostEarly.add(id)
    this.wake(id)
  }

  /** Gives the lease to the first waiter, because the engine has granted the pending request. */
  granted(pending: PendingRequest, status: HeldStatus): void {
    const request = this.#waiters.first?.request
    // mutant: lease-of-another
    if (request && request.lease !== pending.lease) return pending.askWith(request.lease)
    const isDoubted = this.#stopRequest(pending)
    // mutant: keep-unused-grant
    if (!request) return pending.cancelInEngine()
    const lease = this.#leaseFrom(status, pending.request, pending.sentAt, request)
    // Without a lease the grant came too late and was released, so the queue sends a new request.
    if (lease) {
      this.#serve(lease, 0, status.read)
      if (isDoubted) this.keeper.verify(lease)
      if (this.#isShared) this.#admitReaders(lease)
      this.#dropUnused()
    }
    this.#pump()
  }

  /** Sends a new request for the waiters, behind all others, because the engine no longer has the pending one. */
  gone(pending: PendingRequest): void {
    this.#stopRequest(pending)
    this.#pump(pending.retryUntil)
  }

  /** Rejects all waiters, unless another request of theirs is pending. Its grant or its failure ends their wait. */
  requestFailed(pending: PendingRequest, error: Error): void {
    this.#stopRequest(pending)
    if (this.#pending.length === 0) this.failAll(error)
  }

  /** Rejects all waiters. */
  failAll(error: Error): void {
    for (const pending of [...this.#pending]) {
      // A box that drains still has a session, so an abandoned request would block the requests behind it.
      this.#drop(pending)
    }
    while (this.#waiters.first) this.#refuse(this.#waiters.first, error)
  }

  onRelease(grant: LocalGrant): Promise<void> {
    const { lease } = grant
    if (this.keeper.isLost(lease)) return Promise.reject(lease.loss!)
    // mutant: first-reader-releases
    if (lease.users.length > 1) {
      this.events.released(lease, grant)
      lease.users.splice(lease.users.indexOf(grant), 1)
      return RELEASED
    }
    // mutant: downgraded-turn
    if (lease.downgraded || lease.forceReleased || lease.isBound) return this.#releaseInEngine(lease)
    if (this.#waiters.first && this.#pending.length === 0 && this.#canPassOn) return this.#passOn(grant)
    if (this.#isExclusive && !this.#waiters.first && this.#reportsContention(lease)) {
      this.events.released(lease)
      this.#keepSpare(grant)
      return RELEASED
    }
    return this.#releaseInEngine(lease)
  }

  /** Called when the engine has released the grant in the same step as it wrote values. */
  releasedByCommit(grant: LocalGrant): void {
    const { lease } = grant
    grant.released = true
    this.keeper.remove(lease)
    // A lease that was lost during the commit is finished already.
    if (!lease.loss) {
      this.events.released(lease)
      this.#finish(lease)
    }
    this.#pump()
  }

  leaseLost(lease: Lease): void {
    this.events.lost(lease)
    // Its user may never release it, so neither the local waiters nor the engine wait for that.
    this.#finish(lease)
    // mutant: lost-grant-not-cancelled
    this.#session.cleanUp({ type: 'cancel', request: lease.request }, lease.duration)
    this.#pump()
  }

  async fence({ lease }: LocalGrant, transaction: SqlTransaction): Promise<void> {
    const { engine } = this.#session
    if (!engine.fence) throw this.errors.cannotFence()
    if (lease.downgraded || !lease.request.claims.some(({ mode }) => mode === 'exclusive'))
      throw this.errors.notExclusive()
    // Set before the engine answers, because the lease may be released by then.
    lease.isBound = true
    const { request, number } = lease
    if (await engine.fence({ request, number }, transaction)) return
    this.keeper.lose(lease, 'the engine has revoked it')
    throw lease.loss!
  }

  async downgrade(grant: LocalGrant): Promise<void> {
    const { lease } = grant
    const { request, number } = lease
    if (!this.set.claims.every(({ mode }) => mode === 'exclusive')) throw this.errors.cannotDowngrade()
    if (!lease.downgraded) {
      // Counted before the engine answers, because the lease may be released by then.
      lease.downgraded = true
      this.#downgraded++
    }
    const answer = this.#session.send({ type: 'downgrade', request, number })
    // The engine executes operations in order, so the later ones are about shared claims.
    lease.request = { ...request, claims: sharedClaims(request.claims) }
    let done
    try {
      done = await answer
    } catch (error) {
      if (error instanceof UnavailableError) lease.request = request
      throw error
    }
    if (!done) this.keeper.lose(lease, 'the engine has revoked it')
    if (lease.loss) throw lease.loss
    // The lease gets no further turn, so the writers that wait in this queue need a request.
    this.#pump()
  }

  /**
   * Keeps a released lease for the next local caller. It is released in the engine only when the engine reports that
   * another request waits for it. Java virtual machines have had such biased locks, for objects that one thread uses.
   */
  #keepSpare({ lease }: LocalGrant): void {
    this.#finish(lease)
    this.#spare = lease
    this.keeper.keepSpare(lease)
  }

  /** A further turn on the spare lease, if it satisfies the caller's request; otherwise releases the spare. */
  #fromSpare(request: AcquireRequest, event: LockEvent | undefined): LocalGrant | undefined {
    const lease = this.#spare
    if (!lease) return undefined
    const now = this.clock.now()
    if (request.label !== lease.request.label || !lease.satisfies(request, now)) {
      this.dropSpare(lease)
      return undefined
    }
    this.#spare = undefined
    lease.isSpare = false
    this.#leases++
    this.#session.began()
    return this.#give(lease, lease.turn + 1, request, now, undefined, event)
  }

  dropSpare(lease: Lease): void {
    this.#spare = undefined
    lease.isSpare = false
    this.keeper.remove(lease)
    this.#session.cleanUp({ type: 'release', request: lease.request, number: lease.number }, lease.duration)
  }

  /** Whether no request waits for the lease, and the engine guarantees to send `contended` before it decides one. */
  #reportsContention(lease: Lease): boolean {
    return this.#session.engine.reportsContention && lease.isUncontended
  }

  /** Puts a caller at the end of the queue, then calls `goOn`. */
  #queueUp(request: AcquireRequest, goOn: () => void, event: LockEvent | undefined): Promise<LocalGrant> {
    const mayEnd = request.wait < Infinity || request.signal !== undefined
    const waiting = new Promise<LocalGrant>((resolve, reject) => {
      const since = this.clock.now()
      const until = since + request.wait
      const waiter = new LockWaiter(request, since, resolve, reject, event)
      this.#waitsUntil = this.#waiters.first ? Math.max(this.#waitsUntil, until) : until
      this.#waiters.add(waiter)
      goOn()
      // A waiter that was served at once, or has no limit, needs no timer. The timer of its next check-in keeps the
      // process alive. A waiter behind a local holder needs no timer: only that holder's release can serve it.
      if (!waiter.isQueued || !mayEnd) return
      this.#waiters.limit(waiter, request.wait, until, request.signal)
      this.#waiters.setTimer()
    })
    return mayEnd ? tracedToCaller(waiting) : waiting
  }

  /** Whether several callers can use a lease at once. */
  get #isShared(): boolean {
    return this.#places === Infinity
  }

  /** Whether the queue may send one more request. */
  #mayRequest(): boolean {
    const { length } = this.#pending
    if (this.#taken(length)) return false
    return length === 0 || (!this.#isShared && length < MAX_PENDING && !this.#isQueued())
  }

  /** Whether the leases in use exclude the other callers of this queue, if the engine grants `more` requests. */
  #taken(more = 0): boolean {
    return this.#leases - this.#downgraded + more >= this.#places
  }

  /** Whether the engine has queued a pending request. */
  #isQueued(): boolean {
    return this.#pending.some(({ hasWaited }) => hasWaited)
  }

  /**
   * Sends requests for the first waiters, unless they are pending or a turn will reach the waiter.
   * @param retryUntil see {@link PendingRequest}; by default the deadline of the latest lease of this queue
   */
  #pump(retryUntil = this.#latest?.deadline): void {
    while (this.#waiters.callers > this.#pending.length && this.#mayRequest()) {
      const { request } = this.#firstUnasked()
      const wait = this.longestWait()
      const asked = this.#newRequest(request.label)
      const pending = this.#startRequest(asked, request.lease, wait, this.clock.now(), retryUntil)
      pending.follow(this.#enqueue(asked, request, wait))
    }
  }

  /** The first waiter without a request. There must be one. */
  #firstUnasked(): LockWaiter {
    let waiter = this.#waiters.first!
    for (const _ of this.#pending) waiter = this.#waiters.after(waiter)!
    return waiter
  }

  /** Sends the request of waiters that had to await something first, unless the box refuses requests by now. */
  #askLate(): void {
    const refusal = this.#session.refusal()
    if (refusal) this.failAll(refusal)
    else this.#pump()
  }

  #newRequest(label: string | undefined): LockRequest {
    const session = this.#session
    return { id: session.nextRequest(), session: session.id, claims: this.set.claims, label }
  }

  #startRequest(
    request: LockRequest,
    lease: number,
    wait: number,
    sentAt: number,
    retryUntil?: number,
  ): PendingRequest {
    this.#session.expectWake(request.id, this)
    const pending = new PendingRequest(this.#session, this, request, lease, wait, sentAt, retryUntil)
    this.#pending.push(pending)
    return pending
  }

  /** Returns whether its grant was reported as lost. */
  #stopRequest(pending: PendingRequest): boolean {
    pending.stop()
    const index = this.#pending.indexOf(pending)
    if (index !== -1) this.#pending.splice(index, 1)
    return this.#forgetWake(pending.request.id)
  }

  /** Passes on no more hints for a request. Returns whether its grant was reported as lost. */
  #forgetWake(id: string): boolean {
    this.#session.forgetWake(id)
    return this.#lostEarly.delete(id)
  }

  #enqueue(request: LockRequest, { lease, read, steal }: AcquireRequest, wait: number): Awaitable<Answer> {
    return this.#session.send({ type: 'enqueue', request, lease, wait, read, steal })
  }

  /** Cancels a request that the engine may have applied although it failed. */
  #forget(request: LockRequest, lease: number, error: unknown): void {
    // mutant: unclear-try-stays
    if (!(error instanceof UnavailableError)) this.#session.cleanUp({ type: 'cancel', request }, lease)
  }

  /** Creates a lease from the engine's grant. If the grant came after its own deadline, releases it instead. */
  #leaseFrom(
    status: HeldStatus,
    asked: LockRequest,
    sentAt: number,
    request: AcquireRequest,
  ): Lease | undefined {
    const now = this.clock.now()
    // mutant: use-late-grant
    if (now >= sentAt + request.lease) {
      this.#session.cleanUp({ type: 'release', request: asked, number: status.number }, request.lease)
      return undefined
    }
    return this.#begin(status, asked, sentAt, request, now)
  }

  /** @param now when the grant arrived. Turns count from then, so that a slow answer leaves time for them. */
  #begin(
    status: HeldStatus,
    asked: LockRequest,
    sentAt: number,
    request: AcquireRequest,
    now: number,
  ): Lease {
    this.#leases++
    this.#session.began()
    const { lease: duration, renew } = request
    // mutant: late-deadline
    const lease = new Lease(asked, this.set, status.number, duration, sentAt + duration, renew, this)
    lease.isUncontended = status.isUncontended ?? false
    lease.countTurnsFrom(0, now)
    this.keeper.add(lease)
    this.#latest = lease
    return lease
  }

  /** Gives the lease to the first waiter. */
  #serve(lease: Lease, turn: number, read?: ReadOutcome): void {
    const waiter = this.#waiters.first!
    this.#waiters.remove(waiter)
    waiter.resolve(this.#give(lease, turn, waiter.request, waiter.since, read, waiter.event))
  }

  #give(
    lease: Lease,
    turn: number,
    { label }: AcquireRequest,
    since: number,
    read: ReadOutcome | undefined,
    event?: LockEvent,
  ): LocalGrant {
    lease.turn = turn
    const grantedAt = this.events.granted(lease, turn, since, event)
    const grant = new LocalGrant(this, lease, turn, label, grantedAt, read)
    if (this.#isShared && turn > 0) lease.users.push(grant)
    else lease.users[0] = grant
    return grant
  }

  /** Gives a lease that was just granted to all readers that wait for the same grant. */
  #admitReaders(lease: Lease): void {
    const { label } = lease.request
    const now = this.clock.now()
    for (let next = this.#waiters.first; next; next = this.#waiters.first) {
      if (next.request.label !== label || !lease.satisfies(next.request, now)) return
      this.#serve(lease, lease.turn + 1)
    }
  }

  /** Passes a lease on to the next waiter: as a further turn within the limits, otherwise by asking the engine. */
  #passOn(grant: LocalGrant): Promise<void> {
    const { lease } = grant
    const { request } = this.#waiters.first!
    const now = this.clock.now()
    if (!lease.satisfies(request, now)) return this.#extendOrYield(lease, request)
    if (lease.isFair(now) || this.#reportsContention(lease)) {
      this.events.released(lease)
      this.#serve(lease, lease.turn + 1)
      return RELEASED
    }
    return lease.isUncontended ? this.#readMessagesFirst(grant) : this.#extendOrYield(lease, request)
  }

  /** Passes a lease on after processing the messages that have arrived, because another request may want it by now. */
  async #readMessagesFirst(grant: LocalGrant): Promise<void> {
    await new Promise(runtimeTimers.setImmediate)
    const { lease } = grant
    if (this.keeper.isLost(lease)) throw lease.loss!
    if (!this.#waiters.first || this.#pending.length > 0 || lease.forceReleased)
      return this.#releaseInEngine(lease)
    if (lease.isUncontended) lease.countTurnsFrom(lease.turn + 1, this.clock.now())
    return this.#passOn(grant)
  }

  /**
   * Asks the engine to extend the lease. If another request waits for it, the engine releases it instead, and puts this
   * queue's next request behind the others.
   */
  #extendOrYield(lease: Lease, request: AcquireRequest): Promise<void> {
    const next = this.#newRequest(request.label)
    const wait = this.longestWait()
    const pending = this.#startRequest(next, request.lease, wait, this.clock.now(), lease.deadline)
    const { request: held, number } = lease
    // No caller uses the lease until the answer, which sets a new deadline.
    this.keeper.remove(lease)
    const settle = (status: Answer): void => {
      if (!isStatus(status)) return fail(this.errors.unknownStatus(status))
      if (status.state !== 'gone') this.events.released(lease)
      if (status.state === 'held' && status.id === held.id)
        return this.#extended(lease, status, pending, request)
      this.#finish(lease)
      pending.arrived(status)
      // The pending request may have ended, and a task of a box that drains may have queued another caller.
      this.#pump()
      if (status.state === 'gone') throw this.#goneBefore(lease)
    }
    const fail = (error: unknown): never => {
      this.events.releaseFailed(lease, error)
      this.#finish(lease)
      // mutant: failed-extension-stays
      this.#session.cleanUp({ type: 'cancel', request: held }, lease.duration)
      pending.failed(error)
      this.#pump()
      throw error
    }
    const { lease: duration } = request
    return settled(
      this.#session.send({ type: 'extendOrYield', request: held, number, next, lease: duration, wait }),
      settle,
      fail,
    )
  }

  /** Gives the next waiter the lease that the engine has extended under a new number. */
  #extended(
    lease: Lease,
    { number, isUncontended = false }: HeldStatus,
    pending: PendingRequest,
    request: AcquireRequest,
  ): void {
    if (this.#pending.includes(pending)) this.#stopRequest(pending)
    lease.number = number
    lease.duration = request.lease
    lease.renew = request.renew
    // mutant: extension-from-reply
    lease.deadline = pending.sentAt + request.lease
    lease.isUncontended = isUncontended
    const now = this.clock.now()
    const waiter = this.#waiters.first
    if (
      !waiter ||
      waiter.request.lease !== request.lease ||
      waiter.request.renew !== request.renew ||
      now >= lease.deadline
    ) {
      // The caller that the lease was extended for has given up, or the answer came after the new deadline.
      this.#finish(lease)
      this.#session.cleanUp({ type: 'release', request: lease.request, number }, lease.duration)
      return this.#pump()
    }
    this.keeper.add(lease)
    lease.countTurnsFrom(0, now)
    this.#serve(lease, 0)
  }

  /** Releases a lease in the engine, and sends a request for the remaining waiters. */
  #releaseInEngine(lease: Lease): Promise<void> {
    this.keeper.remove(lease)
    this.#finish(lease)
    const { request, number } = lease
    const settle = (held: boolean): void => {
      if (!held) throw this.#goneBefore(lease)
      this.events.released(lease)
    }
    const fail = (error: unknown): never => {
      this.events.releaseFailed(lease, error)
      // A retry is safe, because a release names its grant.
      // mutant: failed-release-not-repeated
      this.#session.cleanUp({ type: 'release', request, number }, lease.duration)
      throw error
    }
    const released = settled(this.#session.send({ type: 'release', request, number }), settle, fail)
    this.#pump()
    return released
  }

  #finish(lease: Lease): void {
    this.#leases--
    if (lease.downgraded) this.#downgraded--
    this.#session.finished()
  }

  timeOver(now: number): void {
    while (this.#waiters.earliestDeadline <= now) this.#timedOut(this.#waiters.mostUrgent!)
    this.#waiters.setTimer(now)
  }

  aborted(waiter: LockWaiter, signal: AbortSignal): void {
    this.#leave(waiter, this.errors.aborted(signal))
  }

  #timedOut(waiter: LockWaiter): void {
    this.#leave(waiter, this.errors.timedOut(waiter.request.wait, this.knownHolder()))
  }

  /** The holder that the waiters wait for, as far as this box knows it. */
  knownHolder(): Holder | undefined {
    if (this.#pending[0]) return this.#pending[0].holder()
    const { member } = this.#session
    const label = this.#latest?.users.at(-1)?.label ?? member.label
    return this.#leases > 0 ? { ...member, label, age: undefined } : undefined
  }

  /** Removes a waiter. If fewer are left than requests, cancels the newest request. */
  #leave(waiter: LockWaiter, error: Error): void {
    this.#refuse(waiter, error)
    this.#dropUnused()
  }

  /** Stops the newest request if it is one too many, unless its answer is on its way. */
  #dropUnused(): void {
    const newest = this.#surplus()
    // That answer serves the next caller. If none has come by then, its grant is released.
    if (newest?.state === 'queued' || (newest && this.#session.engine.withdraw?.(newest.request)))
      this.#drop(newest)
  }

  // Only the newest: an older one has a place that an earlier caller waits for.
  dropSurplus(): void {
    for (let newest = this.#surplus(); newest; newest = this.#surplus()) this.#drop(newest)
  }

  /** The newest request if there are more requests than callers. */
  #surplus(): PendingRequest | undefined {
    // mutant: leave-cancels-others
    return this.#pending.length > this.#waiters.callers ? this.#pending.at(-1) : undefined
  }

  #drop(pending: PendingRequest): void {
    this.#stopRequest(pending)
    if (pending.state === 'queued') pending.cancelInEngine()
  }

  #refuse(waiter: LockWaiter, error: Error): void {
    this.#waiters.remove(waiter)
    waiter.reject(error)
  }

  /** The context of errors about this queue's locks. */
  context(): { key: string; engine: string } {
    return this.errors.context
  }

  #goneBefore(lease: Lease): LostError {
    if (!lease.loss) {
      lease.loss = this.errors.lostBeforeRelease()
      for (const user of lease.users) user.lost()
    }
    this.events.lost(lease)
    return lease.loss
  }
}

const RELEASED = Promise.resolve()

/** Maximum number of grants of a claim that hold at once. */
function placesOf(claim: Claim): number {
  switch (claim.mode) {
    case 'exclusive':
      return 1
    case 'shared':
      return Infinity
    case 'permits':
      return Math.floor(claim.max / claim.permits)
  }
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

/** Calls `done` or `failed` with an answer, at once if the engine has answered within the call, and settles then. */
function settled<T>(
  answer: Awaitable<T>,
  done: (outcome: T) => void,
  failed: (error: unknown) => never,
): Promise<void> {
  if (answer instanceof Promise) return answer.then(done, failed)
  try {
    done(answer)
    return RELEASED
  } catch (error) {
    return Promise.reject(error)
  }
}
