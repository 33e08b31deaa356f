import pThrottle from 'p-throttle'
import { SECOND } from '../setting.js'
import type { Strategy } from './strategy.js'

/** p-throttle with its defaults. */
export const pThrottleWindow: Strategy = {
  name: 'p-throttle',
  modes: ['tasks'],
  simulated: false,
  prepare: () => undefined,
  join(_shared, { limit }) {
    return { pass: pThrottle({ limit, interval: SECOND })(() => Promise.resolve()) }
  },
}
