import { setTimeout as wait } from 'node:timers/promises'

/** A clock that tests can replace. */
export interface Clock {
  /** Milliseconds on a monotonic clock. */
  now(): number
  /** Waits `duration` milliseconds, or until `signal` aborts if there is one, whichever comes first. */
  sleep(duration: number, signal?: AbortSignal): Promise<void>
}

/** The system's clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  // It rejects only if the signal aborts, which ends the wait.
  sleep: (duration, signal) =>
    wait(Math.min(duration, 2 ** 31 - 1), undefined, { signal }).catch(() => undefined),
}
