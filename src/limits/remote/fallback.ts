import { wallOf, type Clock } from '../../base/clock.js'
import { MIN_DELAY } from '../../base/waiters.js'
import type { Rules } from '../counter.js'
import { termsOf, type AcquireOptions } from '../limit-options.js'
import type { LimiterErrors } from '../limiter-errors.js'
import { LocalPermits } from '../local/local-permits.js'
import { PermitCounter } from '../local/permit-counter.js'
import { Times } from '../times.js'
import type { Permit } from '../permit.js'
import type { BoxPermits } from './box-permits.js'

/** Error that moves the fallback's waiters back to the engine when it is reachable again. */
const ENGINE_REACHABLE = new Error('the engine is reachable again')

/** The limiter of this process alone, for callers while the engine is unreachable. */
export class Fallback {
  readonly #clock: Clock
  readonly #rules: Rules
  readonly #local: LocalPermits
  readonly #again: BoxPermits['acquire']
  #isShut = false

  /** @param again requests a permit of the engine for a waiter of this process alone, when the engine is back. */
  constructor(clock: Clock, share: Rules, errors: LimiterErrors, again: BoxPermits['acquire']) {
    this.#clock = clock
    this.#again = again
    this.#rules = { ...share }
    const times = new Times(share.windows, clock, wallOf(clock))
    this.#local = new LocalPermits(this.#rules, times, new PermitCounter(this.#rules, times), errors)
  }

  /** Called when the engine has answered after an outage. */
  ended(): void {
    if (!this.#isShut) this.#local.refuseAll(ENGINE_REACHABLE)
  }

  /** Returns a permit that the engine does not count. @param now clock time. */
  async acquire(n: number, options: AcquireOptions | undefined, now: number): Promise<Permit> {
    try {
      return await this.#local.acquire(n, options)
    } catch (error) {
      if (error !== ENGINE_REACHABLE) throw error
      const { wait, ...others } = termsOf(options)
      // A wait of 0 would mean no wait.
      const rest = Math.max(now + wait - this.#clock.now(), MIN_DELAY)
      return this.#again(n, { ...others, wait: rest })
    }
  }

  change({ windows }: Rules): void {
    this.#rules.windows = windows
    this.#local.limitsChanged()
  }

  /** Admits no further caller. */
  shut(): void {
    this.#isShut = true
    this.#local.shut()
  }

  /** Rejects all waiters, once it is shut. */
  refuseAll(): void {
    this.#local.refuseAll()
  }

  /** Resolves when no waiter is left. */
  async end(): Promise<void> {
    await this.#local.end()
  }
}
