import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { open } from '../../src/open.js'
import { ZOOKEEPER_GUARANTEES } from '../../src/engines/zookeeper/guarantees.js'
import { openZooKeeper } from '../../src/engines/zookeeper/open.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import type { EngineFixture } from '../../src/conformance/fixture.js'

let shared: Promise<ZooKeeperServer> | undefined

/** The server of this test file; each test has a node of its own on it. It ends with the test process. */
function server(): Promise<ZooKeeperServer> {
  return (shared ??= startZooKeeper())
}

/** The ZooKeeper engine on one server. */
export const zookeeper: EngineFixture = {
  name: 'zookeeper',
  guarantees: ZOOKEEPER_GUARANTEES,
  hasClock: false,
  weaknesses: {
    async P2() {
      await using server = await startZooKeeper()
      const tokens: bigint[] = []
      for (const grants of [3, 1]) {
        await using box = await open(`zookeeper://${server.address}/place`)
        for (let count = 0; count < grants; count++)
          await box.mutex('key').run(grant => void tokens.push(grant.token))
        await server.kill()
        server.wipe()
        await server.start()
      }
      expect(tokens[3]).toBeLessThan(tokens[2]!)
    },
  },
  async start() {
    const { address } = await server()
    const url = `zookeeper://${address}/${randomUUID().slice(0, 8)}?sessionTimeout=4s`
    return { url, engine: () => openZooKeeper(url), close: () => undefined }
  },
}
