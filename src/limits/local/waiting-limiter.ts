import type { AcquireOptions, TenantOptions } from '../limit-options.js'
import type { Decision, Explanation, Limiter } from '../limiter.js'
import { underPermit, type Permit } from '../permit.js'

/** Implements the methods of a limiter by its current permits. */
export abstract class WaitingLimiter implements Limiter {
  protected abstract readonly permits: Omit<Limiter, 'run'>

  tryAcquire(n?: number): Permit | undefined {
    return this.permits.tryAcquire(n)
  }

  decide(): Decision {
    return this.permits.decide()
  }

  acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    return this.permits.acquire(n, options)
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T> {
    return underPermit(() => this.acquire(n, options), task)
  }

  explain(n?: number, tenant?: TenantOptions): Explanation {
    return this.permits.explain(n, tenant)
  }

  pauseUntil(time: Date | number): void {
    this.permits.pauseUntil(time)
  }

  resume(): void {
    this.permits.resume()
  }
}
