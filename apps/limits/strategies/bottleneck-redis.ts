import Bottleneck from 'bottleneck'
import { Redis } from 'ioredis'
import { SECOND } from '../setting.js'
import type { Strategy } from './strategy.js'

/** Time after its last use at which its state expires, in milliseconds. */
const FORGET = 60_000

/** bottleneck's clustering: a reservoir in Redis that is refilled once a second. */
export const bottleneckRedis: Strategy = {
  name: 'bottleneck redis',
  modes: ['processes'],
  simulated: false,
  onRedis: true,
  prepare: () => undefined,
  join(_shared, { limit, engine, name }) {
    const own = new Bottleneck({
      id: name,
      datastore: 'ioredis',
      connection: new Bottleneck.IORedisConnection({ client: new Redis(engine) }),
      timeout: FORGET,
      reservoir: limit,
      reservoirRefreshAmount: limit,
      reservoirRefreshInterval: SECOND,
    })
    return { pass: () => own.schedule(() => Promise.resolve()) }
  },
}
