import { joinLimiter, limiter, sharedLimiter, type SharedLimiterHandle } from 'signalbox/limits'
import { EVERYWHERE } from './memory.js'
import type { Strategy } from './strategy.js'

/** At most so many in any second, as early as that allows. */
export const signalboxSliding: Strategy = {
  name: 'signalbox sliding',
  modes: EVERYWHERE,
  simulated: true,
  prepare: (limit, mode, jitter) =>
    mode === 'threads' ? sharedLimiter({ limit, per: '1s', jitter }).handle : undefined,
  join(handle, { limit, jitter, virtual }) {
    const own = handle
      ? joinLimiter(handle as SharedLimiterHandle)
      : limiter({ limit, per: '1s', jitter, clock: virtual })
    return {
      async pass() {
        await own.acquire()
      },
    }
  },
}
