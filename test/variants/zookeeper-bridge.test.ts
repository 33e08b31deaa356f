import { openZooKeeper } from '../../packages/zookeeper/src/engine/open.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { contractSuite } from '../contract/suite.js'
import { zookeeper } from '../contract/zookeeper-fixture.js'

/** The ZooKeeper engine with additional nodes for kazoo. */
const bridged: EngineFixture = {
  ...zookeeper,
  name: 'zookeeper with a bridge',
  async start() {
    const { close, url } = await zookeeper.start()
    const own = `${url}&bridge=true`
    return { url: own, engine: () => Promise.resolve(openZooKeeper(own)), close }
  },
}

contractSuite(bridged)
