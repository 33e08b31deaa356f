import type { Grant } from '../locks/grant.js'
import type { ExecutionResult, ExecutionStats } from './errors.js'
import type { Redlock } from './redlock.js'

/** Resources that are locked until `expiration`. */
export class Lock {
  /** Always empty. */
  readonly attempts: readonly Promise<ExecutionStats>[] = []

  /**
   * @param grant what redlock has no equal to: the fencing token, the signal of a loss, `assertHeld()`.
   * @param expiration milliseconds of the wall clock; 0 once it was released, extended or lost.
   */
  constructor(
    readonly redlock: Redlock,
    readonly resources: string[],
    readonly grant: Grant,
    public expiration: number,
  ) {}

  /** What tells this lock from all others: its fencing token. */
  get value(): string {
    return String(this.grant.token)
  }

  /** As {@link Redlock.release}. */
  release(): Promise<ExecutionResult> {
    return this.redlock.release(this)
  }

  /** As {@link Redlock.extend}. */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration)
  }
}
