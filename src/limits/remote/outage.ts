import { wallOf, type Clock } from '../../clock.js'
import type { Rules } from '../counter.js'
import { termsOf, type AcquireOptions } from '../limit-options.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { LocalWaiters } from '../local/local-waiters.js'
import { PermitCounter } from '../local/permit-counter.js'
import { Times } from '../local/times.js'
import type { Permit } from '../permit.js'
import type { BoxPermits } from './box-permits.js'

/** Delay before the next request to an engine that is out of reach, in milliseconds. */
export const RETRY = 500
/** Minimum remaining wait of a caller that keeps waiting, in milliseconds, because 0 would mean no wait. */
export const MIN_WAIT = 0.001

/** Notifies the waiters for a permit of this process alone that they must wait for one of the engine. */
const BACK = new Error('the engine is reachable again')

/**
 * Tracks whether the engine is out of reach. If `onUnavailable` says so, callers then get permits from a limiter of
 * this process alone.
 */
export class Outage {
  /** The error of the last request; undefined if it succeeded. */
  error: Error | undefined
  /** When to send the next request: clock time. */
  retryAt = -Infinity
  readonly #clock: Clock
  readonly #rules: Rules | undefined
  readonly #local: LocalWaiters | undefined
  readonly #again: BoxPermits['acquire']
  #isShut = false

  /**
   * @param share the limits of this process alone; undefined if callers get no permits without the engine.
   * @param again requests a permit of the engine for a waiter of this process alone, when the engine is back.
   */
  constructor(clock: Clock, share: Rules | undefined, errors: LimiterErrors, again: BoxPermits['acquire']) {
    this.#clock = clock
    this.#again = again
    if (!share) return
    this.#rules = { ...share }
    const times = new Times(share.windows, clock, wallOf(clock))
    this.#local = new LocalWaiters(this.#rules, times, new PermitCounter(this.#rules, times), errors)
  }

  began(error: Error): void {
    this.error = error
    this.retryAt = this.#clock.now() + RETRY
  }

  /** Called when the engine has answered. */
  ended(): void {
    if (this.error && !this.#isShut) this.#local?.refuseAll(BACK)
    this.error = undefined
  }

  /** Whether callers get permits of this process alone now. */
  get goesWithout(): boolean {
    return this.error !== undefined && this.#local !== undefined
  }

  /** Whether to send a request now. If so, sets the time of the next one. */
  takeRetry(now: number): boolean {
    if (now < this.retryAt) return false
    this.retryAt = now + RETRY
    return true
  }

  /** Returns a permit that the engine does not count. @param now clock time. */
  async acquire(n: number, options: AcquireOptions | undefined, now: number): Promise<Permit> {
    try {
      return await this.#local!.acquire(n, options)
    } catch (error) {
      if (error !== BACK) throw error
      const { wait, ...others } = termsOf(options)
      const rest = Math.max(now + wait - this.#clock.now(), MIN_WAIT)
      return this.#again(n, { ...others, wait: rest })
    }
  }

  change(share: Rules | undefined): void {
    if (!this.#rules) return
    this.#rules.windows = share!.windows
    this.#local!.limitsChanged()
  }

  /** Admits no further caller. */
  shut(): void {
    this.#isShut = true
    this.#local?.shut()
  }

  /** Rejects all waiters, once it is shut. */
  refuseAll(): void {
    this.#local?.refuseAll()
  }

  /** Resolves when no waiter is left. */
  async end(): Promise<void> {
    await this.#local?.end()
  }
}
