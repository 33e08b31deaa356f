import { java } from '../../test/interop/programs.js'
import { foreign, VIRTUAL_MACHINE_WARM_UP } from './foreign.js'
import { redisSupport } from './redis-server.js'

/** Redisson's usual lock. */
export const rLock = foreign({
  name: 'RLock of Redisson',
  program: java('RedissonCycles'),
  support: redisSupport,
  warmUp: VIRTUAL_MACHINE_WARM_UP,
})

/** Its lock that is granted in the order in which it was asked for. */
export const rFairLock = foreign({
  name: 'RFairLock of Redisson',
  program: java('RedissonCycles'),
  more: ['fair'],
  support: redisSupport,
  warmUp: VIRTUAL_MACHINE_WARM_UP,
})
