import type { LockEvent } from '../base/diagnostics.js'
import { sharedClaims } from '../engine/claim.js'
import type { Awaitable, LockRequest, ReadOutcome, SqlTransaction } from '../engine/contract.js'
import { UnavailableError, type Holder, type LostError } from '../base/errors.js'
import { runtimeTimers } from '../base/runtime-timers.js'
import { Waiter } from '../base/lane.js'
import type { ClaimSet } from './claims.js'
import { LocalGrant, type GrantOwner } from './grant.js'
import { Lease, type LeaseOwner } from './lease.js'
import type { LeaseKeeper } from './lease-keeper.js'
import type { LockErrors } from './lock-errors.js'
import type { LockEvents } from './lock-events.js'
import type { AcquireTerms } from './lock-options.js'
import {
  isStatus,
  type Answer,
  type HeldStatus,
  type PendingRequest,
  type QueueSession,
} from './pending-request.js'
import type { Requests } from './requests.js'

/** A caller that waits for a grant. */
export class LockWaiter extends Waiter {
  constructor(
    readonly request: AcquireTerms,
    /** When it began to wait: clock time. */
    readonly since: number,
    readonly resolve: (grant: LocalGrant) => void,
    readonly reject: (error: Error) => void,
    /** The event that was published about its request, if there was a subscriber. */
    readonly event: LockEvent | undefined,
  ) {
    super(1)
  }
}

/** The waiting callers of a local queue, as far as its leases need them. */
export interface LeaseCallers {
  readonly first: LockWaiter | undefined
  /** Removes the first caller, because it gets a grant. */
  shift(): LockWaiter
  /** How much longer they wait at most, in milliseconds. */
  longestWait(): number
  pump(): void
}

/**
 * The leases of a local queue. Each is used by one caller after another, each for a turn, or by several readers
 * together. When its last user releases it, it goes to the next caller, is kept as a spare, or ends: see the states of
 * {@link Lease}.
 */
export class Leases implements GrantOwner, LeaseOwner {
  readonly keeper: LeaseKeeper
  readonly #session: QueueSession
  readonly #set: ClaimSet
  readonly #events: LockEvents
  readonly errors: LockErrors
  readonly #requests: Requests
  readonly #callers: LeaseCallers
  /** Whether a lease can be passed on to the next caller. A shared one would block a writer that came earlier. */
  readonly #canPassOn: boolean
  /** Whether a lease of this claim set excludes all others. */
  readonly #isExclusive: boolean
  /** Maximum number of leases at once. Infinity if all claims are shared. */
  readonly #places: number
  #inUse = 0
  /** Number of those that were downgraded, and so admit other holders. */
  #downgraded = 0
  /** The lease that the engine granted last; it may have ended. */
  #latest: Lease | undefined
  #spare: Lease | undefined

  constructor(
    session: QueueSession,
    set: ClaimSet,
    places: number,
    events: LockEvents,
    errors: LockErrors,
    requests: Requests,
    callers: LeaseCallers,
  ) {
    this.keeper = session.keeper
    this.#session = session
    this.#set = set
    this.#events = events
    this.errors = errors
    this.#requests = requests
    this.#callers = callers
    this.#canPassOn = !set.claims.some(claim => claim.mode === 'shared')
    this.#isExclusive = set.claims.some(claim => claim.mode === 'exclusive')
    this.#places = places
  }

  get keys(): readonly string[] {
    return this.#set.claims.map(claim => claim.key)
  }

  get idle(): boolean {
    return this.#inUse === 0 && !this.#spare
  }

  /** Until when the latest lease is or was held: clock time. */
  get latestDeadline(): number | undefined {
    return this.#latest?.deadline
  }

  /** Whether the leases in use exclude the other callers of this queue, if the engine grants `more` requests. */
  areTaken(more = 0): boolean {
    return this.#inUse - this.#downgraded + more >= this.#places
  }

  /**
   * A holder among the local callers, if a lease is in use. Its label is that of the latest lease, even if that lease
   * has ended and another one is in use.
   */
  holder(): Holder | undefined {
    const { member } = this.#session
    const label = this.#latest?.users.at(-1)?.label ?? member.label
    return this.#inUse > 0 ? { ...member, label, age: undefined } : undefined
  }

  /**
   * Creates a lease from the engine's grant. If the grant came after its own deadline, releases it instead.
   * @param now when the grant arrived: clock time. Turns count from then, so that a slow answer leaves time for them.
   */
  begin(
    status: HeldStatus,
    asked: LockRequest,
    sentAt: number,
    { lease: duration, renew }: AcquireTerms,
    now: number,
  ): Lease | undefined {
    // mutant: use-late-grant
    if (now >= sentAt + duration) {
      this.#releaseUnused(asked, status.number, duration)
      return undefined
    }
    // mutant: late-deadline
    const lease = new Lease(asked, this.#set, status.number, duration, sentAt + duration, renew, this)
    this.#use(lease)
    lease.isUncontended = status.isUncontended ?? false
    lease.countTurnsFrom(0, now)
    this.keeper.add(lease)
    this.#latest = lease
    return lease
  }

  /** Gives the caller a turn. @param since when it requested the lock: clock time. */
  give(
    lease: Lease,
    turn: number,
    { label }: AcquireTerms,
    since: number,
    read: ReadOutcome | undefined,
    event?: LockEvent,
  ): LocalGrant {
    lease.turn = turn
    const grantedAt = this.#events.granted(lease, turn, since, event)
    const grant = new LocalGrant(this, lease, turn, label, grantedAt, read)
    if (this.#isShared && turn > 0) lease.users.push(grant)
    else lease.users[0] = grant
    return grant
  }

  /** Gives a lease that was just granted to the first caller, and to all readers that wait for the same grant. */
  serve(lease: Lease, read?: ReadOutcome): void {
    this.#serveFirst(lease, 0, read)
    if (!this.#isShared) return
    const { label } = lease.request
    const now = this.#session.clock.now()
    for (let next = this.#callers.first; next; next = this.#callers.first) {
      if (next.request.label !== label || !lease.satisfies(next.request, now)) return
      this.#serveFirst(lease, lease.turn + 1)
    }
  }

  /** Gives a turn on the spare if it fits; otherwise releases it. */
  fromSpare(request: AcquireTerms, event: LockEvent | undefined): LocalGrant | undefined {
    const lease = this.#spare
    if (!lease) return undefined
    const now = this.#session.clock.now()
    if (request.label !== lease.request.label || !lease.satisfies(request, now)) {
      this.dropSpare(lease)
      return undefined
    }
    this.#spare = undefined
    this.#use(lease)
    return this.give(lease, lease.turn + 1, request, now, undefined, event)
  }

  dropSpare(lease: Lease): void {
    this.#spare = undefined
    lease.state = 'ended'
    this.keeper.remove(lease)
    this.#releaseUnused(lease.request, lease.number, lease.duration)
  }

  onRelease(grant: LocalGrant): Promise<void> {
    const { lease } = grant
    if (this.keeper.isLost(lease)) return Promise.reject(lease.loss!)
    // mutant: first-reader-releases
    if (lease.users.length > 1) {
      this.#events.released(lease, grant)
      lease.users.splice(lease.users.indexOf(grant), 1)
      return RELEASED
    }
    // mutant: downgraded-turn
    if (lease.downgraded || lease.forceReleased || lease.isBound) return this.#releaseInEngine(lease)
    const waiter = this.#callers.first
    if (waiter && this.#requests.size === 0 && this.#canPassOn) return this.#passOn(lease, waiter.request)
    if (this.#isExclusive && !waiter && this.#isExclusivelyOurs(lease)) {
      this.#events.released(lease)
      this.#keepSpare(lease)
      return RELEASED
    }
    return this.#releaseInEngine(lease)
  }

  /** Called when the engine has released the grant in the same step as it wrote values. */
  releasedByCommit(grant: LocalGrant): void {
    const { lease } = grant
    grant.released = true
    this.keeper.remove(lease)
    // A lease that was lost during the commit has ended already.
    if (!lease.loss) {
      this.#events.released(lease)
      this.#end(lease)
    }
    this.#callers.pump()
  }

  leaseLost(lease: Lease): void {
    this.#events.lost(lease)
    // Its user may never release it, so neither the local waiters nor the engine wait for that.
    this.#end(lease)
    // mutant: lost-grant-not-cancelled
    this.#session.cleanUp({ type: 'cancel', request: lease.request }, lease.duration)
    this.#callers.pump()
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
    if (!this.#set.claims.every(({ mode }) => mode === 'exclusive')) throw this.errors.cannotDowngrade()
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
    this.#callers.pump()
  }

  /** Whether several callers can use a lease at once. */
  get #isShared(): boolean {
    return this.#places === Infinity
  }

  #use(lease: Lease): void {
    lease.state = 'used'
    this.#inUse++
    this.#session.leaseBegan()
  }

  #unuse(lease: Lease): void {
    this.#inUse--
    if (lease.downgraded) this.#downgraded--
    this.#session.leaseEnded()
  }

  #end(lease: Lease): void {
    lease.state = 'ended'
    this.#unuse(lease)
  }

  /**
   * Keeps a released lease for the next local caller. It is released in the engine only when the engine reports that
   * another request waits for it. The JVM's biased locking works alike.
   */
  #keepSpare(lease: Lease): void {
    this.#unuse(lease)
    this.#spare = lease
    this.keeper.keepSpare(lease)
  }

  /** Whether no request waits for the lease, and the engine guarantees to send `contended` before it decides one. */
  #isExclusivelyOurs(lease: Lease): boolean {
    return this.#session.engine.reportsContention && lease.isUncontended
  }

  #serveFirst(lease: Lease, turn: number, read?: ReadOutcome): void {
    const waiter = this.#callers.shift()
    waiter.resolve(this.give(lease, turn, waiter.request, waiter.since, read, waiter.event))
  }

  /** Passes a lease on to the first caller: as a further turn within the limits, otherwise by asking the engine. */
  #passOn(lease: Lease, request: AcquireTerms): Promise<void> {
    const now = this.#session.clock.now()
    if (!lease.satisfies(request, now)) return this.#extendOrYield(lease, request)
    if (lease.isFair(now) || this.#isExclusivelyOurs(lease)) {
      this.#events.released(lease)
      this.#serveFirst(lease, lease.turn + 1)
      return RELEASED
    }
    return lease.isUncontended ? this.#readMessagesFirst(lease) : this.#extendOrYield(lease, request)
  }

  /** Passes a lease on after processing the messages that have arrived, because another request may want it by now. */
  async #readMessagesFirst(lease: Lease): Promise<void> {
    await new Promise(runtimeTimers.setImmediate)
    if (this.keeper.isLost(lease)) throw lease.loss!
    const waiter = this.#callers.first
    if (!waiter || this.#requests.size > 0 || lease.forceReleased) return this.#releaseInEngine(lease)
    if (lease.isUncontended) lease.countTurnsFrom(lease.turn + 1, this.#session.clock.now())
    return this.#passOn(lease, waiter.request)
  }

  /**
   * Asks the engine to extend the lease. If another request waits for it, the engine releases it instead, and puts this
   * queue's next request behind the others.
   */
  #extendOrYield(lease: Lease, request: AcquireTerms): Promise<void> {
    const next = this.#requests.create(request.label)
    const wait = this.#callers.longestWait()
    const now = this.#session.clock.now()
    const pending = this.#requests.add(next, request.lease, wait, now, lease.deadline)
    const { request: held, number } = lease
    lease.state = 'extending'
    // No caller uses the lease until the answer, which sets a new deadline.
    this.keeper.remove(lease)
    const settle = (status: Answer): void => {
      if (!isStatus(status)) return fail(this.errors.unknownStatus(status))
      if (status.state !== 'gone') this.#events.released(lease)
      if (status.state === 'held' && status.id === held.id)
        return this.#extended(lease, status, pending, request)
      this.#end(lease)
      pending.arrived(status)
      // The pending request may have ended, and a task of a box that drains may have queued another caller.
      this.#callers.pump()
      if (status.state === 'gone') throw this.#lostBeforeRelease(lease)
    }
    const fail = (error: unknown): never => {
      this.#events.releaseFailed(lease, error)
      this.#end(lease)
      // mutant: failed-extension-stays
      this.#session.cleanUp({ type: 'cancel', request: held }, lease.duration)
      pending.failed(error)
      this.#callers.pump()
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
    request: AcquireTerms,
  ): void {
    this.#requests.remove(pending)
    lease.number = number
    lease.duration = request.lease
    lease.renew = request.renew
    // mutant: extension-from-reply
    lease.deadline = pending.sentAt + request.lease
    lease.isUncontended = isUncontended
    const now = this.#session.clock.now()
    const next = this.#callers.first?.request
    if (next?.lease !== request.lease || next.renew !== request.renew || now >= lease.deadline) {
      // The caller that the lease was extended for has given up, or the answer came after the new deadline.
      this.#end(lease)
      this.#releaseUnused(lease.request, number, lease.duration)
      return this.#callers.pump()
    }
    lease.state = 'used'
    this.keeper.add(lease)
    lease.countTurnsFrom(0, now)
    this.#serveFirst(lease, 0)
  }

  /** Releases a lease in the engine, and sends a request for the remaining waiters. */
  #releaseInEngine(lease: Lease): Promise<void> {
    this.keeper.remove(lease)
    this.#end(lease)
    const { request, number } = lease
    const settle = (held: boolean): void => {
      if (!held) throw this.#lostBeforeRelease(lease)
      this.#events.released(lease)
    }
    const fail = (error: unknown): never => {
      this.#events.releaseFailed(lease, error)
      // A retry is safe, because a release names its grant.
      // mutant: failed-release-not-repeated
      this.#session.cleanUp({ type: 'release', request, number }, lease.duration)
      throw error
    }
    const released = settled(this.#session.send({ type: 'release', request, number }), settle, fail)
    this.#callers.pump()
    return released
  }

  #releaseUnused(request: LockRequest, number: number, duration: number): void {
    this.#session.cleanUp({ type: 'release', request, number }, duration)
  }

  #lostBeforeRelease(lease: Lease): LostError {
    if (!lease.loss) {
      lease.loss = this.errors.lostBeforeRelease()
      for (const user of lease.users) user.lost()
    }
    this.#events.lost(lease)
    return lease.loss
  }
}

const RELEASED = Promise.resolve()

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
