import { setTimeout as wait } from 'node:timers/promises'

/** A clock that tests can replace. */
export interface Clock {
  /** Milliseconds on a monotonic clock. */
  now(): number
  /** Waits for `duration` milliseconds, or until `signal` aborts. */
  sleep(duration: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => performance.now(),
  // The timer rejects only if the signal aborts, which ends the wait.
  sleep: (duration, signal) =>
    wait(Math.min(duration, 2 ** 31 - 1), undefined, { signal }).catch(() => undefined),
}
