import { describe } from 'vitest'
import { openRedis } from '../../src/engines/redis/open.js'
import { box } from './box.js'
import { deadHolders } from './dead-holders.js'
import { deadline } from './deadline.js'
import { exclusion } from './exclusion.js'
import { fencing } from './fencing.js'
import type { EngineFixture } from './fixture.js'
import { givingUp } from './giving-up.js'
import { order } from './order.js'
import { quiet } from './quiet.js'
import { redis } from './redis-fixture.js'
import { release } from './release.js'
import { safeState } from './safe-state.js'
import { waking } from './waking.js'
import { wholeness } from './wholeness.js'

/** The Redis engine with held keys as Redisson has them. */
const redisson: EngineFixture = {
  ...redis,
  name: 'redis with the layout of Redisson',
  async start() {
    const { close, url } = await redis.start()
    const own = `${url}&layout=redisson`
    return { url: own, engine: () => openRedis(own), close }
  },
}

// Whatever depends on how a held key is read and written; the rest of the suite would be the same again.
describe(redisson.name, () => {
  exclusion(redisson)
  fencing(redisson)
  deadline(redisson)
  order(redisson)
  waking(redisson)
  wholeness(redisson)
  release(redisson)
  givingUp(redisson)
  deadHolders(redisson)
  quiet(redisson)
  safeState(redisson)
  box(redisson)
})
