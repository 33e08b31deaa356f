import { openRedis } from '../../src/engines/redis/open.js'
import { box } from '../../packages/conformance/src/box.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { quiet } from '../../packages/conformance/src/quiet.js'
import { redis } from '../contract/redis-fixture.js'
import { lockParts } from '../contract/lock-parts.js'
import { contractParts } from '../contract/suite.js'
import { safeState } from '../../packages/conformance/src/safe-state.js'

/** The Redis engine with held keys in Redisson's format. */
const redisson: EngineFixture = {
  ...redis,
  name: 'redis with the layout of Redisson',
  async start() {
    const { close, url } = await redis.start()
    const own = `${url}&layout=redisson`
    return { url: own, engine: () => openRedis(own), close }
  },
}

// Runs only checks that depend on the format of held keys. Other checks would repeat those of the default layout.
contractParts(redisson, ...lockParts, quiet, safeState, box)
