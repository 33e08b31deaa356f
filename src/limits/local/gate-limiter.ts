import type { Gate } from './gate.js'
import type { AcquireOptions } from '../limit-options.js'
import type { Decision, Explanation, Limiter } from '../limiter.js'
import type { Permit } from '../permit.js'

/** A limiter whose every verb is decided by a gate. */
export abstract class GateLimiter implements Limiter {
  /** The gate as it is now. */
  protected abstract readonly gate: Gate

  tryAcquire(n?: number): Permit | undefined {
    return this.gate.tryAcquire(n)
  }

  decide(): Decision {
    return this.gate.decide()
  }

  acquire(n?: number, options?: AcquireOptions): Promise<Permit> {
    return this.gate.acquire(n, options)
  }

  run<T>(task: (permit: Permit) => T | Promise<T>, n?: number, options?: AcquireOptions): Promise<T> {
    return this.gate.run(task, n, options)
  }

  explain(n?: number): Explanation {
    return this.gate.explain(n)
  }

  pauseUntil(time: Date | number): void {
    this.gate.pauseUntil(time)
  }
}
