import type { Clock, Timer } from '../base/clock.js'
import type {
  Awaitable,
  Cancel,
  Engine,
  LockRequest,
  Operation,
  OutcomeOf,
  ReadSet,
  Release,
  RequestStatus,
  SessionInfo,
} from '../engine/contract.js'
import { heartbeatWithin, placeTtl } from '../engine/wait-times.js'
import { RETRY_DELAY } from '../engine/retry-until-expired.js'
import { UnavailableError, type Holder } from '../base/errors.js'
import type { ClaimSet } from './claims.js'
import type { LeaseKeeper } from './lease-keeper.js'
import type { LockErrors } from './lock-errors.js'
import type { CoveredRequest, SignOfLife } from './sign-of-life.js'

/** Minimum delay between two check-ins, in milliseconds. */
const MIN_DELAY = 5
/** After this number of wake-ups in a row that were false, further ones cause check-ins with a pause. */
const FALSE_WAKES = 8
/** That pause, in milliseconds. */
const WAKE_PAUSE = 50

/**
 * Time before the end of a wait at which a request asks for the holder, and the minimum wait for that, in milliseconds.
 */
const LAST_LOOK = 1000
const LONG_WAIT = 3000

/** An engine's answer. A faulty engine of another author may answer null or undefined. */
export type Answer = RequestStatus | null | undefined

export type HeldStatus = RequestStatus & { readonly state: 'held' }
type QueuedStatus = RequestStatus & { readonly state: 'queued' }

/** Receives the engine's hints about a request that is not granted yet. */
export interface HintReceiver {
  readonly queue: WaitingQueue
  /** The engine may have reserved the keys for it. */
  wake(): void
  /** The request, or the grant whose reply is still on its way, may be lost. */
  lost(): void
}

/** The session of a local queue, as far as the queue, its requests and its leases need it. */
export interface QueueSession {
  readonly id: string
  readonly member: SessionInfo
  readonly engine: Engine
  readonly clock: Clock
  readonly keeper: LeaseKeeper
  /** Covers requests that wait. Undefined if the engine keeps no signs; then each request sends heartbeats. */
  readonly signs: SignOfLife | undefined
  /** Set once the session has ended. */
  readonly ending: Error | undefined
  /** Why new requests are refused; undefined when they are accepted. */
  refusal(): Error | undefined
  /** A request ID that no other request ever had. */
  nextRequest(): string
  /** Passes on the hints for this request, until {@link forgetHints}. */
  expectHints(id: string, receiver: HintReceiver): void
  forgetHints(id: string): void
  /** Sends an operation. An engine in this process answers at once. */
  send<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  /**
   * Removes an unused request or grant from the engine, with retries until its lease has expired.
   * @param isCovered whether signs of the session keep it beyond its lease.
   */
  cleanUp(operation: Cancel | Release, lease: number, isCovered?: boolean): void
  /** Counts a lease as in use, until {@link leaseEnded}. */
  leaseBegan(): void
  leaseEnded(): void
}

/** A local queue, as far as others see it. */
export interface WaitingQueue {
  readonly set: ClaimSet
  readonly errors: LockErrors
  readonly waiting: boolean
  /** Of two waiting queues, the one with the lower order sent its request first. Infinity if it has no request. */
  readonly order: number
  failAll(error: Error): void
}

/** The local queue, as far as its requests need it. */
export interface RequestOwner extends WaitingQueue {
  /** How much longer the local callers wait at most, in milliseconds. */
  longestWait(): number
  /** The values that the first waiter reads with its grant. */
  wantedRead(): ReadSet | undefined
  /** If it has more requests than callers, stops the newest ones. */
  dropAllSurplus(): void
  granted(pending: PendingRequest, status: HeldStatus): void
  gone(pending: PendingRequest): void
  /** The request failed, and is not sent again. */
  requestFailed(pending: PendingRequest, error: Error): void
}

let orders = 0

/**
 * The request by which a local queue waits in the engine's queue. It checks in when the engine wakes it, and after the
 * time that the engine asked for. The signs of its session keep its entry alive; without them, it checks in often
 * enough.
 */
export class PendingRequest implements CoveredRequest, HintReceiver {
  /**
   * `sent`: waits for a reply. `woken`: as `sent`, and a wake-up has arrived since. `queued`: the engine has replied
   * that it is in the queue. `stopped`: its queue no longer uses it.
   */
  #state: 'sent' | 'woken' | 'queued' | 'stopped' = 'sent'
  /** Its place in the order in which the local queues of this process sent their requests. */
  readonly order = ++orders
  /** Whether a hint says that it, or its grant, is lost. */
  isDoubted = false
  readonly #session: QueueSession
  /** Number of check-ins after wake-ups since the last one that its timer caused. */
  #wakes = 0
  #timer: Timer | undefined
  /** The last answer about its place in the queue, and when that arrived: clock time. */
  #lastQueued: { readonly status: QueuedStatus; readonly at: number } | undefined

  /**
   * @param lease the requested lease, in milliseconds.
   * @param wait how much longer the local callers wait at most, as sent to the engine, in milliseconds.
   * @param sentAt when the last operation about it was sent: clock time.
   */
  constructor(
    session: QueueSession,
    readonly queue: RequestOwner,
    readonly request: LockRequest,
    public lease: number,
    public wait: number,
    public sentAt: number,
    /**
     * Retry an unreachable engine until this time: clock time. 0 unless the engine has confirmed this request or the
     * one that this request replaces, or the local queue had a lease until then.
     */
    public retryUntil = 0,
  ) {
    this.#session = session
    session.expectHints(request.id, this)
  }

  follow(answer: Awaitable<Answer>): void {
    if (!(answer instanceof Promise)) return this.arrived(answer)
    answer.then(
      status => this.arrived(status),
      (error: unknown) => this.failed(error),
    )
  }

  arrived(status: Answer): void {
    const { errors } = this.queue
    if (!isStatus(status)) return this.failed(errors.unknownStatus(status))
    if (this.#state === 'stopped') {
      // All callers gave up in the meantime, or the box was closed.
      // mutant: stopped-request-stays
      if (status.state === 'held' || status.state === 'queued') this.cancelInEngine()
      return
    }
    switch (status.state) {
      case 'held':
        return this.queue.granted(this, status)
      case 'queued':
        return this.#queued(status)
      case 'mismatch':
        return this.queue.failAll(errors.mismatch(status.key, status.max))
      case 'gone':
      case 'busy':
        return this.queue.gone(this)
    }
  }

  failed(error: unknown): void {
    const { clock } = this.#session
    const isStopped = this.#state === 'stopped'
    // mutant: failed-check-in-ends-wait
    if (!isStopped && this.queue.waiting && this.retryUntil > clock.now()) {
      // The request still has its place in the engine's queue, and the engine may be back before it loses that.
      this.#state = 'queued'
      this.#checkInAfter(RETRY_DELAY)
      return
    }
    // A new request that certainly did not reach the engine needs no cancellation.
    if (this.retryUntil > 0 || !(error instanceof UnavailableError)) this.cancelInEngine()
    if (!isStopped) this.queue.requestFailed(this, this.queue.errors.failed(error))
  }

  /** Whether it waits in the queue, and no reply about it is on its way. */
  get isQueued(): boolean {
    return this.#state === 'queued'
  }

  get hasWaited(): boolean {
    return this.#lastQueued !== undefined
  }

  /** The holder that the engine named in its last answer, if any. */
  holder(): Holder | undefined {
    const { status, at } = this.#lastQueued ?? {}
    if (!status?.holder) return undefined
    const { session, host, pid, label, age } = status.holder
    // A request right behind the only holder is woken when that releases, so it still holds the key.
    const isHolder = this.request.claims.length === 1 && status.place <= 1
    const ageNow = isHolder ? age + this.#session.clock.now() - at! : undefined
    return { session, host, pid, label, age: ageNow }
  }

  wake(): void {
    if (this.isQueued) this.#checkInWoken()
    // mutant: miss-wake-up
    else if (this.#state === 'sent') this.#state = 'woken'
  }

  lost(): void {
    // mutant: early-loss-forgotten
    this.isDoubted = true
    this.wake()
  }

  /** Requests the grant with another lease, because the caller that wanted the first one has given up. */
  askWith(lease: number): void {
    // The engine has granted the request, so it keeps it for the lease that was asked for.
    this.retryUntil = this.sentAt + this.lease
    this.lease = lease
    this.#checkIn()
  }

  covered(sentAt: number): void {
    // The wait has not ended, so only the lease limits how long the engine keeps the place.
    this.retryUntil = Math.max(this.retryUntil, sentAt + this.lease)
  }

  due(sentAt: number): void {
    // A later check-in is on its way, or has found it waiting.
    if (this.isQueued && this.sentAt <= sentAt) this.#checkInWoken()
  }

  uncovered(): void {
    // Another request may be the reason why the sign failed. Its own check-in decides whether it fails, too.
    if (this.isQueued && this.retryUntil <= this.#session.clock.now()) this.#checkIn()
  }

  /** Ends the check-ins. A grant in an answer that is on its way is released. */
  stop(): void {
    this.#timer?.cancel()
    this.#session.signs?.remove(this)
    this.#session.forgetHints(this.request.id)
    this.#state = 'stopped'
  }

  /** Cancels the request in the engine, in whatever state it is there. */
  cancelInEngine(): void {
    const isCovered = this.#session.signs !== undefined && this.hasWaited
    this.#session.cleanUp({ type: 'cancel', request: this.request }, this.lease, isCovered)
  }

  /** Checks in after a wake-up. Limits the check-ins that false wake-ups cause. */
  #checkInWoken(): void {
    const earliest = this.sentAt + WAKE_PAUSE
    const now = this.#session.clock.now()
    if (this.#wakes < FALSE_WAKES || now >= earliest) {
      this.#wakes++
      return this.#checkIn()
    }
    this.#timer?.cancel()
    this.#timer = this.#session.clock.after(earliest - now, () => this.#checkIn(), true, true)
  }

  /** Asks for the status of the request, and claims the keys if they are reserved for it. */
  #checkIn(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#state = 'sent'
    this.sentAt = this.#session.clock.now()
    this.wait = this.queue.longestWait()
    const { request, lease, wait } = this
    this.follow(this.#session.send({ type: 'checkIn', request, lease, wait, read: this.queue.wantedRead() }))
  }

  #queued(status: QueuedStatus): void {
    const isWoken = this.#state === 'woken'
    this.#state = 'queued'
    this.#lastQueued = { status, at: this.#session.clock.now() }
    this.retryUntil = this.sentAt + placeTtl(this)
    // Callers may have given up before the answer arrived.
    this.queue.dropAllSurplus()
    if (!this.isQueued) return
    // mutant: unsigned-waiter
    this.#session.signs?.add(this)
    if (isWoken) return this.#checkInWoken()
    const within = this.#session.signs ? this.#untilLastLook() : this.#untilHeartbeat()
    // mutant: silent-waiter
    const delay = Math.min(status.checkInAfter, within)
    if (delay < Infinity) this.#checkInAfter(Math.max(delay, MIN_DELAY))
  }

  /** Time until it asks for the holder once more, for the error of callers whose wait ends. */
  #untilLastLook(): number {
    return this.wait > LONG_WAIT ? this.wait - LAST_LOOK : Infinity
  }

  #untilHeartbeat(): number {
    // The engine may have counted its time since it was sent. Callers that came later may wait longer.
    return heartbeatWithin(this) - (this.#session.clock.now() - this.sentAt)
  }

  #checkInAfter(delay: number): void {
    const checkIn = (): void => {
      this.#wakes = 0
      this.#checkIn()
    }
    this.#timer = this.#session.clock.after(delay, checkIn, true, true)
  }
}

/** Whether an answer has a state of the contract. With another one, the caller would wait forever. */
export function isStatus(answer: Answer): answer is RequestStatus {
  switch (answer?.state) {
    case 'held':
    case 'queued':
    case 'busy':
    case 'gone':
    case 'mismatch':
      return true
    default:
      return false
  }
}
