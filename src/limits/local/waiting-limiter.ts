import type { Costs } from '../costs.js'
import type { AcquireOptions, TenantOptions } from '../limit-options.js'
import type { Decision, Explanation, Limiter } from '../limiter.js'
import { underPermit, type Permit } from '../permit.js'

/** Implements the methods of a limiter by its current permits. */
export abstract class WaitingLimiter implements Limiter {
  protected abstract readonly permits: Omit<Limiter, 'run'>

  tryAcquire(cost?: Costs): Permit | undefined {
    return this.permits.tryAcquire(cost)
  }

  decide(cost?: Costs): Decision {
    return this.permits.decide(cost)
  }

  acquire(cost?: Costs, options?: AcquireOptions): Promise<Permit> {
    return this.permits.acquire(cost, options)
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, cost?: Costs, options?: AcquireOptions): Promise<T> {
    return underPermit(() => this.acquire(cost, options), task)
  }

  explain(cost?: Costs, tenant?: TenantOptions): Explanation {
    return this.permits.explain(cost, tenant)
  }

  pauseUntil(time: Date | number): void {
    this.permits.pauseUntil(time)
  }

  resume(): void {
    this.permits.resume()
  }
}
