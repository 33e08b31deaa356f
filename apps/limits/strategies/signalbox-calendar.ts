import { limiter } from 'signalbox/limits'
import type { Strategy } from './strategy.js'

/** At most so many in each second of the clock. */
export const signalboxCalendar: Strategy = {
  name: 'signalbox calendar',
  modes: ['tasks'],
  simulated: true,
  prepare: () => undefined,
  join(_shared, { limit, jitter, virtual }) {
    const own = limiter({ limit, per: '1s', window: 'calendar', jitter, clock: virtual })
    return {
      async pass() {
        await own.acquire()
      },
    }
  },
}
