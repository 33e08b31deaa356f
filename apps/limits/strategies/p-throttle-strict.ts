import pThrottle from 'p-throttle'
import { SECOND } from '../setting.js'
import type { Strategy } from './strategy.js'

/** p-throttle with `strict`. */
export const pThrottleStrict: Strategy = {
  name: 'p-throttle strict',
  modes: ['tasks'],
  simulated: false,
  prepare: () => undefined,
  join(_shared, { limit }) {
    return { pass: pThrottle({ limit, interval: SECOND, strict: true })(() => Promise.resolve()) }
  },
}
