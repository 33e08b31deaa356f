import { joinLimiter, limiter, sharedLimiter, type SharedLimiterHandle } from 'signalbox/limits'
import { EVERYWHERE } from './memory.js'
import type { Strategy } from './strategy.js'

/**
 * Signalbox's limiter within one process. `'sliding'` allows at most the limit in any second, and permits each call as
 * early as possible. `'calendar'` limits each second of the wall clock. `'smooth'` spaces permits evenly.
 */
export function signalboxWindow(window: 'sliding' | 'calendar' | 'smooth'): Strategy {
  return {
    name: `signalbox ${window}`,
    modes: EVERYWHERE,
    simulated: true,
    guarded: window === 'calendar' ? 'seconds of the clock' : 'any second',
    prepare: (limit, mode, jitter) =>
      mode === 'threads' ? sharedLimiter({ limit, per: '1s', window, jitter }).handle : undefined,
    join(handle, { limit, jitter, virtual }) {
      const own = handle
        ? joinLimiter(handle as SharedLimiterHandle)
        : limiter({ limit, per: '1s', window, jitter, clock: virtual })
      return {
        async pass() {
          await own.acquire()
        },
      }
    },
  }
}
