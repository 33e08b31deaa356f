import type { LocalWaiters } from './local-waiters.js'
import type { AcquireOptions } from '../limit-options.js'
import type { Decision, Explanation, Limiter } from '../limiter.js'
import { underPermit, type Permit } from '../permit.js'

/** Implements the methods of a limiter by its waiters. */
export abstract class WaitingLimiter implements Limiter {
  /** The current waiters. */
  protected abstract readonly waiters: LocalWaiters

  tryAcquire(n?: number): Permit | undefined {
    return this.waiters.tryAcquire(n)
  }

  decide(): Decision {
    return this.waiters.decide()
  }

  acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    return this.waiters.acquire(n, options)
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T> {
    return underPermit(() => this.acquire(n, options), task)
  }

  explain(n?: number): Explanation {
    return this.waiters.explain(n)
  }

  pauseUntil(time: Date | number): void {
    this.waiters.pauseUntil(time)
  }

  resume(): void {
    this.waiters.resume()
  }
}
