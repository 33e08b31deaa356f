import type { Clock } from '../../clock.js'
import type { Grant } from '../../core/grant.js'
import type { Lock } from '../../core/lock.js'
import { IndeterminateError, UnavailableError } from '../../errors.js'
import type { Waiters } from '../../waiters.js'
import { Callers, type CallersOwner } from '../callers.js'
import type { Terms } from '../limit-options.js'
import { PermitWaiter } from '../local/permit-waiter.js'
import { aborted } from '../refusals.js'
import { RETRY } from './outage.js'

/** Where slots come from, and what is notified of failures. */
interface SemaphoreSource {
  readonly clock: Clock
  /** The semaphore of the box. Each of its grants is a slot. */
  readonly lock: Lock
  /** For errors. */
  readonly context: { readonly key: string; readonly engine: string }
  /** Whether waiters wait on while the engine can't be asked. */
  readonly waitsOn: boolean
  /** Called when the engine could not be asked. */
  readonly failed: (error: Error) => void
  /** Finds out whether the engine can be asked: a waiter for a slot does not learn it otherwise. */
  readonly look: () => Promise<void>
}

/** A caller that waits for a slot. */
type SlotWaiter = PermitWaiter<void>

/**
 * The semaphore of a limiter with a concurrency. Each call in use has one slot of it, regardless of the number of its
 * permits. The waiters of this process stand in one queue, by priority. While there are waiters, it asks the engine for
 * one slot at a time. Among processes the engine serves first come, first served.
 */
export class ConcurrencySemaphore implements CallersOwner<void> {
  readonly #source: SemaphoreSource
  readonly #callers: Callers<void>
  readonly #waiters: Waiters<SlotWaiter>
  readonly #inUse: Grant[] = []
  /** Ends the request that is under way. */
  #asking: AbortController | undefined
  /** When to find out whether the engine can be asked: clock time. */
  #lookAt = Infinity

  constructor(source: SemaphoreSource) {
    this.#source = source
    this.#callers = new Callers(source.clock, this, source.context)
    this.#waiters = this.#callers.queue
  }

  /** How many callers wait. */
  get callers(): number {
    return this.#waiters.callers
  }

  /** How many permits of the rate limit they will want. */
  get permits(): number {
    return this.#waiters.permits
  }

  /** How many slots of this process are in use. */
  get running(): number {
    return this.#inUse.length
  }

  get blank(): boolean {
    return this.callers === 0 && this.running === 0 && !this.#asking
  }

  /** Takes a slot if there is one now. Rejects as `Lock.tryAcquire` does. */
  async tryAcquire(): Promise<boolean> {
    if (this.#waiters.first) return false
    const grant = await this.#source.lock.tryAcquire().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
      throw error
    })
    if (!grant) return false
    // A waiter may have come meanwhile.
    const isFree = !this.#waiters.first
    if (isFree) this.#inUse.push(grant)
    else this.#give(grant)
    return isFree
  }

  /** Takes a slot as soon as it is this caller's turn. Rejects as `Lock.acquire` does. */
  acquire(n: number, { wait, signal, priority }: Terms): Promise<void> {
    return new Promise((settle, reject) => {
      if (signal?.aborted) return reject(aborted(signal, this.#source.context))
      const waiter: SlotWaiter = new PermitWaiter(n, 0, settle)
      this.#callers.enter(waiter, priority, signal, this.#source.clock.now() + wait)
      this.#waiters.setTimer()
      if (this.callers === 1 && !this.#asking) void this.#ask()
    })
  }

  /** Gives back a slot. */
  release(): void {
    // A slot that the engine has given up counts no more; the others keep counting. So a lost one is given back first.
    const lost = this.#inUse.findIndex(grant => grant.expiresIn() === 0)
    this.#giveBack(this.#inUse.splice(lost, 1)[0]!)
  }

  /** Rejects the waiters that will want more permits than the rate limit can ever give. */
  refuseAbove(max: number): void {
    this.#callers.refuseAbove(max)
  }

  /** Rejects all waiters. */
  refuseAll(error: Error): void {
    this.#callers.refuseAll(error)
  }

  timeOver(now: number): void {
    this.#callers.refuseDue(now)
    if (!this.#waiters.first) return
    if (now < this.#lookAt) return this.#waiters.checkAt(this.#lookAt, now)
    this.#lookLater(now)
    if (this.#asking) void this.#source.look()
    else void this.#ask()
  }

  gaveUp(): void {
    if (!this.#waiters.first) this.#asking?.abort()
  }

  /** Asks the engine for a slot, and for the next one as long as there are waiters. */
  async #ask(): Promise<void> {
    const { signal } = (this.#asking = new AbortController())
    this.#lookLater(this.#source.clock.now())
    let isAway = false
    try {
      this.#give(await this.#source.lock.acquire({ signal }))
    } catch (error) {
      isAway = !signal.aborted && this.#failed(error as Error)
    }
    this.#asking = undefined
    if (this.#waiters.first && !isAway) void this.#ask()
  }

  /** Returns whether waiters wait until the engine can be asked again. */
  #failed(error: Error): boolean {
    const isAway = isOutage(error)
    if (isAway) this.#source.failed(error)
    if (isAway && this.#source.waitsOn) {
      this.#lookLater(this.#source.clock.now())
      return true
    }
    this.refuseAll(error)
    return false
  }

  #lookLater(now: number): void {
    this.#lookAt = now + RETRY
    this.#waiters.checkAt(this.#lookAt, now)
  }

  /** Gives a grant of the engine to the first waiter, or back. */
  #give(grant: Grant): void {
    const waiter = this.#waiters.first
    if (!waiter) return this.#giveBack(grant)
    this.#callers.leave(waiter)
    this.#inUse.push(grant)
    waiter.settle()
  }

  #giveBack(grant: Grant): void {
    // A slot that can't be given back ends with its lease. A lost one has ended already.
    grant.release().catch((error: unknown) => {
      if (isOutage(error)) this.#source.failed(error)
    })
  }
}

/** Whether an error says that the engine could not be asked. */
export function isOutage(error: unknown): error is UnavailableError | IndeterminateError {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}
