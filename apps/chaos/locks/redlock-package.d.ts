/** The parts that are used here. The `exports` of redlock omit its types, so the compiler cannot find them. */
declare module 'redlock' {
  import type { Redis } from 'ioredis'

  export class ExecutionError extends Error {}

  export class ResourceLockedError extends Error {}

  export class Lock {
    readonly value: string
  }

  interface Settings {
    readonly retryCount: number
    readonly retryDelay?: number
    readonly retryJitter?: number
    readonly automaticExtensionThreshold?: number
  }

  export default class Redlock {
    constructor(clients: readonly Redis[], settings: Settings)
    on(event: 'error', listener: (error: unknown) => void): this
    acquire(resources: readonly string[], duration: number): Promise<Lock>
    release(lock: Lock, settings?: { retryCount: number }): Promise<unknown>
    using<T>(
      resources: readonly string[],
      duration: number,
      routine: (signal: AbortSignal) => Promise<T>,
    ): Promise<T>
  }
}
