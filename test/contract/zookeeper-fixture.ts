import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { ZooKeeper } from 'signalbox-zookeeper'
import { open } from '../../src/open.js'
import { ZOOKEEPER_GUARANTEES } from '../../packages/zookeeper/src/engine/guarantees.js'
import { NodePaths } from '../../packages/zookeeper/src/engine/names.js'
import { openZooKeeper } from '../../packages/zookeeper/src/engine/open.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'
import { behindProxy } from './behind-proxy.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'

/** Returns the number of nodes below a path. */
async function nodesBelow(zk: ZooKeeper, path: string): Promise<number> {
  const { children } = await zk.getChildren(path).catch(() => ({ children: [] }))
  const counts = await Promise.all(children.map(child => nodesBelow(zk, `${path}/${child}`)))
  return counts.reduce((sum, count) => sum + count, children.length)
}

/**
 * Returns the ZooKeeper engine on one server, which ends with the test process. Each test has a node of its own.
 * @param start starts a server.
 */
export function zookeeperOn(name: string, start: () => Promise<ZooKeeperServer>): EngineFixture {
  let shared: Promise<ZooKeeperServer> | undefined
  return {
    name,
    guarantees: ZOOKEEPER_GUARANTEES,
    knowsChanges: true,
    hasClock: false,
    // A request waits for a new connection until its session ends, and then two seconds for a new session.
    failsWithin: 13_000,
    weaknesses: {
      async P2() {
        await using server = await start()
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
      const { address } = await (shared ??= start())
      const root = `/${randomUUID().slice(0, 8)}`
      const url = `zookeeper://${address}${root}?sessionTimeout=6s`
      const counting = await ZooKeeper.connect(address)
      return {
        url,
        engine: () => Promise.resolve(openZooKeeper(url)),
        // Ignores values, because the nodes of deleted values stay for ten minutes.
        size: async () => (await nodesBelow(counting, root)) - (await nodesBelow(counting, `${root}/store`)),
        async spoil(store, key) {
          await counting.setData(new NodePaths(root).value(`${store}/${key}`), 'cut')
        },
        close: () => counting.close(),
      }
    },
    // Uses the default timeout, because a session must last 12 times as long as the delayed round trips of these
    // checks.
    network: ({ url }) => behindProxy(url.replace('sessionTimeout=6s', 'sessionTimeout=10s'), openZooKeeper),
  }
}

/** The ZooKeeper engine on the newest supported server. */
export const zookeeper = zookeeperOn('zookeeper', startZooKeeper)
