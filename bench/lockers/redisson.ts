import { java } from '../../test/interop/programs.js'
import { foreign, VIRTUAL_MACHINE_WARM_UP } from './foreign.js'
import { redisSupport } from './redis-server.js'

/** Redisson's default lock. */
export const rLock = foreign({
  name: 'RLock of Redisson',
  program: java('RedissonCycles'),
  support: redisSupport,
  warmUp: VIRTUAL_MACHINE_WARM_UP,
})

/** Redisson's lock that grants requests in their order. */
export const rFairLock = foreign({
  name: 'RFairLock of Redisson',
  program: java('RedissonCycles'),
  more: ['fair'],
  support: redisSupport,
  warmUp: VIRTUAL_MACHINE_WARM_UP,
})
