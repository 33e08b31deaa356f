import Bottleneck from 'bottleneck'
import { SECOND } from '../setting.js'
import type { Strategy } from './strategy.js'

/** bottleneck, with a reservoir that is refilled once a second. */
export const bottleneck: Strategy = {
  name: 'bottleneck',
  modes: ['tasks'],
  simulated: false,
  prepare: () => undefined,
  join(_shared, { limit }) {
    const own = new Bottleneck({
      reservoir: limit,
      reservoirRefreshAmount: limit,
      reservoirRefreshInterval: SECOND,
    })
    return { pass: () => own.schedule(() => Promise.resolve()) }
  },
}
