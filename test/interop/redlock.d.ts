/** The part that is used here. Its own types are out of the compiler's reach, because its exports leave them out. */
declare module 'redlock' {
  import type { Redis } from 'ioredis'

  export class ExecutionError extends Error {}

  export class Lock {
    readonly value: string
  }

  export default class Redlock {
    constructor(
      clients: readonly Redis[],
      settings: { retryCount: number; retryDelay?: number; retryJitter?: number },
    )
    acquire(resources: readonly string[], duration: number): Promise<Lock>
    release(lock: Lock, settings?: { retryCount: number }): Promise<unknown>
  }
}
