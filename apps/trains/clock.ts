import { setTimeout as wait } from 'node:timers/promises'

/** Time as the application needs it, so that a test can replace it. */
export interface Clock {
  /** Milliseconds on a clock that never goes back. */
  now(): number
  /** Waits `duration` milliseconds, or until `signal` aborts if there is one, whichever comes first. */
  sleep(duration: number, signal?: AbortSignal): Promise<void>
}

/** The system's clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  // The only error is an aborted signal, which ends the wait.
  sleep: (duration, signal) =>
    wait(Math.min(duration, 2 ** 31 - 1), undefined, { signal }).catch(() => undefined),
}
