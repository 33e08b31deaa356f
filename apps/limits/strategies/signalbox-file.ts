import { open } from 'signalbox'
import type { Strategy } from './strategy.js'

/** The sliding window, for all processes that open a box on the same files. */
export const signalboxFile: Strategy = {
  name: 'signalbox file',
  modes: ['processes'],
  simulated: false,
  guarded: 'any second',
  prepare: () => undefined,
  join(_shared, { limit, jitter, engine }) {
    const own = open(engine).then(box => box.limiter('service', { limit, per: '1s', jitter }))
    return {
      async pass() {
        const limiter = await own
        await limiter.acquire()
      },
    }
  },
}
