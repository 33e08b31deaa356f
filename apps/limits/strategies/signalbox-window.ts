import { joinLimiter, limiter, sharedLimiter, type SharedLimiterHandle } from 'signalbox/limits'
import { EVERYWHERE } from './memory.js'
import type { Strategy } from './strategy.js'

/**
 * Within a process. `'sliding'`: at most that many in any second, as early as that allows. `'calendar'`: in each second
 * of the clock. `'smooth'`: evenly spaced.
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
