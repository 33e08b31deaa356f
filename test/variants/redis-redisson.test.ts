import { openRedis } from '../../src/engines/redis/open.js'
import { box } from '../../src/conformance/box.js'
import { deadHolders } from '../../src/conformance/dead-holders.js'
import { deadline } from '../../src/conformance/deadline.js'
import { exclusion } from '../../src/conformance/exclusion.js'
import { fencing } from '../../src/conformance/fencing.js'
import type { EngineFixture } from '../../src/conformance/fixture.js'
import { givingUp } from '../../src/conformance/giving-up.js'
import { order } from '../../src/conformance/order.js'
import { quiet } from '../../src/conformance/quiet.js'
import { redis } from '../contract/redis-fixture.js'
import { contractParts } from '../contract/suite.js'
import { release } from '../../src/conformance/release.js'
import { safeState } from '../../src/conformance/safe-state.js'
import { waking } from '../../src/conformance/waking.js'
import { wholeness } from '../../src/conformance/wholeness.js'

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
contractParts(
  redisson,
  exclusion,
  fencing,
  deadline,
  order,
  waking,
  wholeness,
  release,
  givingUp,
  deadHolders,
  quiet,
  safeState,
  box,
)
