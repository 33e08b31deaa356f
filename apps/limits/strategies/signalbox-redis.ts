import { open } from 'signalbox'
import type { Strategy } from './strategy.js'

/** The sliding window, for all processes that open a box on the same Redis server. */
export const signalboxRedis: Strategy = {
  name: 'signalbox redis',
  modes: ['processes'],
  simulated: false,
  guarded: 'any second',
  onRedis: true,
  prepare: () => undefined,
  join(_shared, { limit, jitter, engine, name }) {
    const own = open(engine).then(box => box.limiter(name, { limit, per: '1s', jitter }))
    return {
      async pass() {
        const limiter = await own
        await limiter.acquire()
      },
    }
  },
}
