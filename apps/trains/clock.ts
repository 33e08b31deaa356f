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
  sleep: (duration, signal) =>
    new Promise(resolve => {
      if (signal?.aborted) {
        resolve()
        return
      }
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.min(duration, 2 ** 31 - 1))
      signal?.addEventListener('abort', done)
    }),
}
