import type { Clock, Timer } from '../base/clock.js'
import type { Alive, Awaitable, LockRequest, SignOutcome, WaitTerms } from '../engine/contract.js'
import { HEARTBEAT_INTERVAL, heartbeatWithin } from '../engine/wait-times.js'
import { RETRY_DELAY } from '../engine/retry-until-expired.js'

/** Delay after the end of another request's time until the sign that finds the request expired, in milliseconds. */
const AFTER_EXPIRY = 5

/** A request that waits in the engine's queues. */
export interface CoveredRequest extends WaitTerms {
  readonly request: LockRequest
  /** A sign that was sent at this clock time has found it waiting. */
  covered(sentAt: number): void
  /** Has to check in: a sign that was sent at this clock time did not find it waiting. */
  due(sentAt: number): void
  /** A sign has failed. The request checks in if it may be about to lose its place. */
  uncovered(): void
}

/**
 * The sign of life of a box: one operation in an interval for all of its requests that wait, so a waiter by itself
 * sends nothing. The first one is sent an interval after a request was queued, earlier for a short lease or wait. Its
 * timer keeps the process alive.
 */
export class SignOfLife {
  readonly #session: string
  readonly #clock: Clock
  readonly #send: (sign: Alive) => Awaitable<SignOutcome>
  readonly #waiting = new Map<string, CoveredRequest>()
  #timer: Timer | undefined
  /** When the next sign is sent: clock time. */
  #at = Infinity
  /** Whether a sign has no answer yet. The next one waits for that. */
  #isSent = false

  constructor(session: string, clock: Clock, send: (sign: Alive) => Awaitable<SignOutcome>) {
    this.#session = session
    this.#clock = clock
    this.#send = send
  }

  /** The engine has answered that the request is queued. */
  add(waiting: CoveredRequest): void {
    this.#waiting.set(waiting.request.id, waiting)
    this.#sendWithin(heartbeatWithin(waiting))
  }

  /** The request does not wait any more. */
  remove({ request }: CoveredRequest): void {
    this.#waiting.delete(request.id)
    if (this.#waiting.size === 0) this.#setTimer(Infinity)
  }

  #sendWithin(delay: number): void {
    const at = this.#clock.now() + delay
    if (at < this.#at) this.#setTimer(at)
  }

  #setTimer(at: number): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#at = at
    if (at === Infinity || this.#isSent) return
    this.#timer = this.#clock.after(at - this.#clock.now(), () => this.#beat(), true, true)
  }

  #beat(): void {
    this.#timer = undefined
    this.#at = Infinity
    const sentAt = this.#clock.now()
    const named = [...this.#waiting.values()]
    this.#isSent = true
    const answer = this.#send({
      type: 'alive',
      session: this.#session,
      requests: named.map(({ request }) => request),
    })
    if (!(answer instanceof Promise)) return this.#answered(answer, named, sentAt)
    answer.then(
      outcome => this.#answered(outcome, named, sentAt),
      () => this.#failed(named),
    )
  }

  #answered({ due, next }: SignOutcome, named: readonly CoveredRequest[], sentAt: number): void {
    const isDue = new Set(due)
    for (const waiting of named) if (!isDue.has(waiting.request.id)) waiting.covered(sentAt)
    // mutant: next-ignored
    this.#goOn(next + AFTER_EXPIRY)
    for (const id of due) this.#waiting.get(id)?.due(sentAt)
  }

  #failed(named: readonly CoveredRequest[]): void {
    for (const waiting of named) if (this.#waiting.get(waiting.request.id) === waiting) waiting.uncovered()
    this.#goOn(RETRY_DELAY)
  }

  /** Sets the time of the next sign after the answer to the last one. */
  #goOn(within: number): void {
    this.#isSent = false
    let delay = Math.min(within, HEARTBEAT_INTERVAL)
    for (const { lease } of this.#waiting.values())
      delay = Math.min(delay, heartbeatWithin({ lease, wait: Infinity }))
    this.#setTimer(this.#waiting.size > 0 ? Math.min(this.#at, this.#clock.now() + delay) : Infinity)
  }
}
