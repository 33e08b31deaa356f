import type { Clock, Timer } from '../../clock.js'
import { IndeterminateError, UnavailableError } from '../../errors.js'
import type { Grant } from '../../core/grant.js'
import type { Lock } from '../../core/lock.js'
import { LocalWaiters } from '../local/local-waiters.js'
import type { AcquireOptions } from '../limit-options.js'
import type { Permit } from '../permit.js'
import type { Turns } from '../local/permit-queue.js'
import { RETRY } from './reservation-client.js'
import type { LimitReport } from '../rules/window.js'
import type { Counter } from '../counter.js'
import { wallOf } from '../../clock.js'
import { Times } from '../local/times.js'
import type { PermitWaiter } from '../local/permit-waiter.js'
import type { Waiters } from '../../waiters.js'

/** Where concurrency permits come from, and what is told of failures. */
export interface ConcurrencySource {
  readonly clock: Clock
  /** Gives one permit at a time. */
  readonly lock: Lock
  /** For errors. */
  readonly context: { readonly key: string; readonly engine: string }
  /** Whether waiters wait on while the engine can't be asked. */
  readonly waitsOn: boolean
  /** Called when the engine could not be asked. */
  readonly failed: (error: Error) => void
  /** Finds out whether the engine can be asked: a waiter for a concurrency permit does not learn it otherwise. */
  readonly look: () => Promise<void>
}

/**
 * The permits of a concurrency, which processes have of the engine: one for each call permit in use. The waiters of
 * this process stand in one queue. While there are waiters, it asks the engine for one permit at a time. Among
 * processes the engine serves first come, first served.
 */
export class ConcurrencyPermits implements Counter, Turns {
  /** The most calls that one caller can want a permit for; it takes one concurrency permit all the same. */
  most: number
  readonly paused = false
  readonly mark = 0
  readonly #source: ConcurrencySource
  readonly #waiters: LocalWaiters
  /** How many callers wait. */
  callers = 0
  /** For how many calls they want permits. */
  permits = 0
  readonly #atHand: Grant[] = []
  readonly #inUse: Grant[] = []
  /** Ends the request that is under way. */
  #asking: AbortController | undefined

  constructor(source: ConcurrencySource, most: number) {
    this.most = most
    this.#source = source
    const times = new Times([], source.clock, wallOf(source.clock))
    const rules = { windows: [], concurrency: Infinity, queue: Infinity }
    this.#waiters = new LocalWaiters(rules, times, this, source.context, this)
  }

  /** A permit now, or undefined; releasing it twice is harmless. Rejects as `Lock.tryAcquire` does. */
  async tryAcquire(): Promise<Permit | undefined> {
    if (this.callers > 0) return undefined
    const grant = await this.#source.lock.tryAcquire().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
      throw error
    })
    if (!grant) return undefined
    this.#atHand.push(grant)
    const share = this.#waiters.tryAcquire()
    // A waiter has come meanwhile.
    if (!share) this.#waiters.wake()
    return share
  }

  /** A permit as soon as it is this caller's turn. Rejects as `Lock.acquire` does. */
  acquire(n: number, options: AcquireOptions): Promise<Permit> {
    return this.#waiters.acquire(n, options)
  }

  /** Changes how many calls one caller may want a permit for. */
  change(most: number): void {
    this.most = most
    this.#waiters.limitsChanged()
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    this.#waiters.refuseAll(error)
  }

  get running(): number {
    return this.#inUse.length
  }

  get full(): boolean {
    return this.#atHand.length === 0
  }

  get blank(): boolean {
    return this.callers === 0 && this.#inUse.length === 0 && !this.#asking
  }

  take(_n: number, _ahead: number, callers: number): number {
    if (this.#atHand.length <= callers) return NaN
    this.#inUse.push(this.#atHand.pop()!)
    return 0
  }

  release(): void {
    // A permit that the engine has given up counts no more; the others go on counting. So a lost one is given back
    // first.
    const lost = this.#inUse.findIndex(grant => grant.expiresIn() === 0)
    this.#giveBack(this.#inUse.splice(lost, 1)[0]!)
  }

  refund(): void {
    // The release that follows gives it back.
  }

  pauseUntil(): void {
    // The rate limit keeps pauses.
  }

  readyAt(): number {
    // When other callers release theirs is not known.
    return this.#source.clock.now()
  }

  binding(): undefined {
    return undefined
  }

  reports(): LimitReport[] {
    return []
  }

  arrive(): number {
    return 0
  }

  stand({ callers, permits }: Waiters<PermitWaiter>): void {
    this.callers = callers
    this.permits = permits
    this.#look()
  }

  rest(): void {
    // This queue has no other threads.
  }

  /** Asks for a permit if a waiter wants one, and gives back permits that no waiter wants. */
  #look(): void {
    if (this.callers > this.#atHand.length && !this.#asking) void this.#ask()
    if (this.callers > 0) return
    this.#asking?.abort()
    for (const grant of this.#atHand.splice(0)) this.#giveBack(grant)
  }

  async #ask(): Promise<void> {
    const { signal } = (this.#asking = new AbortController())
    const looking = this.#keepLooking()
    try {
      this.#atHand.push(await this.#source.lock.acquire({ signal }))
    } catch (error) {
      if (!signal.aborted) await this.#failed(error as Error, signal)
    } finally {
      looking.cancel()
    }
    this.#asking = undefined
    this.#look()
    this.#waiters.wake()
  }

  #keepLooking(): Timer {
    let timer: Timer | undefined
    let isOver = false
    const wait = (): void => {
      if (!isOver) timer = this.#source.clock.after(RETRY, () => void this.#source.look().then(wait), false)
    }
    wait()
    return {
      cancel: () => {
        isOver = true
        timer?.cancel()
      },
    }
  }

  async #failed(error: Error, signal: AbortSignal): Promise<void> {
    const isAway = isOutage(error)
    if (isAway) this.#source.failed(error)
    if (isAway && this.#source.waitsOn) await this.#nextTry(signal)
    else this.refuseAll(error)
  }

  /** Resolves when it is time to try again, or when no waiter is left. */
  #nextTry(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const timer = this.#source.clock.after(RETRY, resolve, true)
      const end = (): void => {
        timer.cancel()
        resolve()
      }
      signal.addEventListener('abort', end, { once: true })
    })
  }

  #giveBack(grant: Grant): void {
    // A permit that can't be given back ends with its lease. A lost one has ended already.
    grant.release().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
    })
  }
}

/** Whether an error says that the engine could not be asked. */
export function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
