import { createCluster } from 'redis'
import { createCluster as createCluster6 } from 'redis6'
import { expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { open } from '../../src/index.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'

const versions: [string, typeof createCluster][] = [
  ['5', createCluster],
  // The types of the versions differ only in parts that these tests do not use.
  ['6', createCluster6 as unknown as typeof createCluster],
]
const kinds = ['an object', 'a function'] as const

test.concurrent.each(versions.flatMap(([version, create]) => kinds.map(kind => ({ version, create, kind }))))(
  'a box over a cluster of node-redis $version that connects when needed reaches its nodes by the address map, $kind',
  async ({ create, kind }) => {
    await using cluster = await startRedisCluster()
    const proxies = new Map<string, Proxy>()
    for (const { host, port } of cluster.masters) proxies.set(`${host}:${port}`, await Proxy.start(port))
    const ends = [...proxies].map(([address, { port }]) => [address, { host: '127.0.0.1', port }] as const)
    const map = Object.fromEntries(ends)
    const [first] = proxies.values()
    const client = create({
      rootNodes: [{ socket: { host: '127.0.0.1', port: first!.port } }],
      minimizeConnections: true,
      nodeAddressMap: kind === 'an object' ? map : (address: string) => map[address],
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      await using box = await open({ redis: client })
      // Uses keys of every node.
      for (let count = 0; count < 12; count++) await box.mutex(`key ${count}`).run(() => undefined)
      for (const proxy of proxies.values()) {
        proxy.target = undefined
        proxy.cut()
      }
      for (let count = 0; count < 12; count++)
        await expect(box.mutex(`key ${count}`).tryAcquire()).rejects.toMatchObject({
          code: expect.stringMatching(/UNAVAILABLE|INDETERMINATE/),
        })
    } finally {
      client.destroy()
      for (const proxy of proxies.values()) await proxy[Symbol.asyncDispose]()
    }
  },
)
