import type { Clock, Timer } from '../clock.js'
import {
  HEARTBEAT_INTERVAL,
  heartbeatWithin,
  placeTtl,
  type Awaitable,
  type Cancel,
  type LockRequest,
  type Operation,
  type OutcomeOf,
  type ReadSet,
  type Release,
  type RequestStatus,
} from '../engine/contract.js'
import { UnavailableError, type Holder } from '../errors.js'
import type { LockErrors } from './lock-errors.js'

/** The pause after a check-in that found the engine unreachable, in milliseconds. */
const RETRY_PAUSE = 200
/** The shortest pause between two check-ins, in milliseconds. */
const MIN_PAUSE = 5

/** What an engine answers. A faulty engine of another author may answer null or undefined. */
export type Answer = RequestStatus | null | undefined

export type HeldStatus = RequestStatus & { readonly state: 'held' }
type QueuedStatus = RequestStatus & { readonly state: 'queued' }

/** What a pending request needs of its session. */
export interface RequestSession {
  readonly clock: Clock
  /** Interval within which a waiter must report that it is alive, in milliseconds. */
  untilBeat(): number
  /** Sends an operation; an engine inside the process answers at once. */
  send<O extends Operation>(operation: O): Awaitable<OutcomeOf<O>>
  /** Gives back what is not used here, see `giveBack`. */
  giveBack(operation: Cancel | Release, lease: number): void
}

/** The local queue that a request waits for. */
export interface RequestOwner {
  readonly errors: LockErrors
  /** Whether a local caller still waits. */
  readonly waiting: boolean
  /** The longest that a local caller waits from now on, in milliseconds. */
  longestWait(): number
  /** What the first waiter reads with its grant. */
  wantedRead(): ReadSet | undefined
  granted(pending: PendingRequest, status: HeldStatus): void
  /** The engine does not have the request any more. */
  gone(pending: PendingRequest): void
  /** No waiter can get a grant. */
  failAll(error: Error): void
}

let orders = 0

/**
 * The one request by which a local queue waits in the engine's queue. It checks in when the engine wakes it, when the
 * engine said that a check-in is useful, and often enough for the engine to know that it is alive.
 */
export class PendingRequest {
  /** `sent` while an answer is awaited. */
  state: 'sent' | 'queued' = 'sent'
  /** The place in the order in which the local queues of this process sent their requests. */
  readonly order = ++orders
  readonly #session: RequestSession
  readonly #owner: RequestOwner
  /** Whether a wake-up came while an answer was still on its way. */
  #isWoken = false
  #timer: Timer | undefined
  /** Set once its queue has no use for it any more. */
  #isOver = false
  /** What the engine last said of its place in the queue, and when that came: clock time. */
  #standing: { readonly status: QueuedStatus; readonly at: number } | undefined

  /**
   * @param lease of the grant that is asked for, in milliseconds.
   * @param wait the longest that a local caller waits for it, as sent to the engine, in milliseconds.
   * @param sentAt when the last operation about it was sent: clock time.
   */
  constructor(
    session: RequestSession,
    owner: RequestOwner,
    readonly request: LockRequest,
    public lease: number,
    public wait: number,
    public sentAt: number,
    /**
     * Until when an unreachable engine is tried again: clock time. 0 before the engine has confirmed this entry or the
     * one before it, that of the same waiters.
     */
    public placeUntil = 0,
  ) {
    this.#session = session
    this.#owner = owner
  }

  /** Handles the answer to the last operation about it, as soon as it is there. */
  follow(answer: Awaitable<Answer>): void {
    if (!(answer instanceof Promise)) return this.arrived(answer)
    answer.then(
      status => this.arrived(status),
      (error: unknown) => this.failed(error),
    )
  }

  arrived(status: Answer): void {
    const { errors } = this.#owner
    if (!isStatus(status)) return this.failed(errors.unknownStatus(status))
    if (this.#isOver) {
      // All callers gave up meanwhile, or the box was closed.
      if (status.state === 'held' || status.state === 'queued') this.takeOut()
      return
    }
    switch (status.state) {
      case 'held':
        return this.#owner.granted(this, status)
      case 'queued':
        return this.#queued(status)
      case 'mismatch':
        return this.#owner.failAll(errors.mismatch(status.key, status.max))
      case 'gone':
      case 'busy':
        return this.#owner.gone(this)
    }
  }

  failed(error: unknown): void {
    const { clock } = this.#session
    if (!this.#isOver && this.#owner.waiting && this.placeUntil > clock.now()) {
      // It still has its place in the engine's queue; the engine may be back before the place is lost.
      this.state = 'queued'
      this.#checkInAfter(RETRY_PAUSE)
      return
    }
    // An engine that was certainly not reached does not have a new request.
    if (this.placeUntil > 0 || !(error instanceof UnavailableError)) this.takeOut()
    if (!this.#isOver) this.#owner.failAll(this.#owner.errors.failed(error))
  }

  /** The holder that the engine last named, if any. */
  holder(): Holder | undefined {
    const { status, at } = this.#standing ?? {}
    if (!status?.holder) return undefined
    const { session, host, pid, label, age } = status.holder
    // Right behind the only holder it is woken as soon as that one is gone.
    const isHolder = this.request.claims.length === 1 && status.place <= 1
    const ageNow = isHolder ? age + this.#session.clock.now() - at! : undefined
    return { session, host, pid, label, age: ageNow }
  }

  /** The engine may have reserved the keys for it. */
  wake(): void {
    if (this.state === 'queued') this.#checkIn()
    // mutant: miss-wake-up
    else this.#isWoken = true
  }

  /** Asks for the grant with another lease, because the caller for which it was asked is gone. */
  askWith(lease: number): void {
    this.placeUntil = this.sentAt + this.lease
    this.lease = lease
    this.#checkIn()
  }

  /** Ends the check-ins. An answer that is still on its way is given back. */
  stop(): void {
    this.#timer?.cancel()
    this.#isOver = true
  }

  /** Cancels it in the engine, whether it was applied there or not. */
  takeOut(): void {
    this.#session.giveBack({ type: 'cancel', request: this.request }, this.lease)
  }

  /** Asks for its status, and claims what is reserved for it. */
  #checkIn(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.state = 'sent'
    this.#isWoken = false
    this.sentAt = this.#session.clock.now()
    this.wait = this.#owner.longestWait()
    const { request, lease, wait } = this
    this.follow(this.#session.send({ type: 'checkIn', request, lease, wait, read: this.#owner.wantedRead() }))
  }

  #queued(status: QueuedStatus): void {
    this.state = 'queued'
    this.#standing = { status, at: this.#session.clock.now() }
    this.placeUntil = this.sentAt + placeTtl(this)
    if (!this.#owner.waiting) {
      // All callers gave up before the answer arrived.
      this.takeOut()
      return this.#owner.gone(this)
    }
    if (this.#isWoken) return this.#checkIn()
    // mutant: silent-waiter
    const pause = Math.min(status.lookAgain, this.#heartbeatPause())
    this.#checkInAfter(Math.max(pause, MIN_PAUSE))
  }

  /** Interval within which the engine expects its next sign of life, in milliseconds. */
  #heartbeatPause(): number {
    const within = heartbeatWithin(this)
    return within < HEARTBEAT_INTERVAL ? within : this.#session.untilBeat()
  }

  #checkInAfter(pause: number): void {
    this.#timer = this.#session.clock.after(pause, () => this.#checkIn(), true)
  }
}

/** Whether the state of an answer is known. An unknown one would make the caller wait forever. */
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
