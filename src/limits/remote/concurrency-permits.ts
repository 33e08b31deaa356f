import type { Clock, Timer } from '../../clock.js'
import { IndeterminateError, UnavailableError } from '../../errors.js'
import type { Grant } from '../../core/grant.js'
import type { Lock } from '../../core/lock.js'
import { LocalWaiters } from '../local/local-waiters.js'
import type { AcquireOptions } from '../limit-options.js'
import type { Permit } from '../permit.js'
import type { Turns } from '../local/queue.js'
import { RETRY } from './reservation-client.js'
import type { LimitReport } from '../rules/window.js'
import type { Counter } from '../counter.js'
import { wallOf } from '../../clock.js'
import { Times } from '../local/times.js'
import type { WaitingLine } from '../local/waiting-line.js'

/** What shares are had from, and who is told what. */
export interface ConcurrencySource {
  readonly clock: Clock
  /** Gives one share at a time. */
  readonly lock: Lock
  /** For errors. */
  readonly context: { readonly key: string; readonly engine: string }
  /** Whether those who wait wait on while the engine can't be asked. */
  readonly waitsOn: boolean
  /** The engine could not be asked. */
  readonly failed: (error: Error) => void
  /** Finds out whether the engine can be asked: who waits for a share does not hear of it. */
  readonly look: () => Promise<void>
}

/**
 * The shares of a concurrency, which processes have of the engine: one share for each permit in use. Those of this process
 * who wait for one stand in a line like any other, and while there are any it asks for one share at a time, first come,
 * first served among processes.
 */
export class ConcurrencyPermits implements Counter, Turns {
  /** The most calls that one caller can want a permit for; the share is one all the same. */
  most: number
  readonly paused = false
  readonly mark = 0
  readonly #source: ConcurrencySource
  readonly #waiters: LocalWaiters
  /** How many wait. */
  callers = 0
  /** For how many calls they want permits. */
  permits = 0
  readonly #atHand: Grant[] = []
  readonly #inUse: Grant[] = []
  /** Of the share that is asked for. */
  #asking: AbortController | undefined

  constructor(source: ConcurrencySource, most: number) {
    this.most = most
    this.#source = source
    const times = new Times([], source.clock, wallOf(source.clock))
    const rules = { windows: [], concurrency: Infinity, queue: Infinity }
    this.#waiters = new LocalWaiters(rules, times, this, source.context, this)
  }

  /** A share now, or undefined; releasing it twice is harmless. Rejects as `Lock.tryAcquire` does. */
  async tryAcquire(): Promise<Permit | undefined> {
    if (this.callers > 0) return undefined
    const grant = await this.#source.lock.tryAcquire().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
      throw error
    })
    if (!grant) return undefined
    this.#atHand.push(grant)
    const share = this.#waiters.tryAcquire()
    // Somebody has come meanwhile who waits for it.
    if (!share) this.#waiters.wake()
    return share
  }

  /** A share as soon as it is this caller's turn. Rejects as `Lock.acquire` does. */
  acquire(n: number, options: AcquireOptions): Promise<Permit> {
    return this.#waiters.acquire(n, options)
  }

  /** What one caller may want is another number now. */
  change(most: number): void {
    this.most = most
    this.#waiters.limitsChanged()
  }

  /** Rejects all who wait. */
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
    // One that the engine has given up counts for nobody any more; what others have goes on counting.
    const lost = this.#inUse.findIndex(grant => grant.expiresIn() === 0)
    this.#giveBack(this.#inUse.splice(lost, 1)[0]!)
  }

  refund(): void {
    // The release that follows gives it back.
  }

  pauseUntil(): void {
    // A pause is the limit's.
  }

  readyAt(): number {
    // Nobody knows when others release theirs.
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

  stand({ callers, permits }: WaitingLine): void {
    this.callers = callers
    this.permits = permits
    this.#look()
  }

  rest(): void {
    // Nobody else stands in this line.
  }

  /** Asks for a share if somebody wants one, and gives back what nobody wants. */
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

  /** Resolves when it is time to try again, or when nobody waits any more. */
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
    // What can't be given back ends with its lease, and what was lost has ended.
    grant.release().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
    })
  }
}

/** Whether it tells that the engine could not be asked. */
export function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
