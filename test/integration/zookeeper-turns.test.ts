import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { locks, pause } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { givesWay, HotKey } from '../support/hot-key.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.kill())

function box(place: string, port = server.port): Promise<Box> {
  return open(`zookeeper://127.0.0.1:${port}${place}?sessionTimeout=60s`)
}

// Run one after the other, because tasks that only acquire and release a lock leave little time for other tests.
describe('turns of a key on ZooKeeper', () => {
  test('a key that only one process wants stays there, until a request of another process is next', async () => {
    const place = '/turns'
    await using one = await box(place)
    await using other = await box(place)
    const hot = new HotKey(one)
    await givesWay(hot, other)
    await hot.end()
    expect(await locks(other)).toEqual([])
  })

  test('a process that gets no hints about other waiters checks after a short time', async () => {
    const place = '/untold'
    await using proxy = await Proxy.start(server.port)
    await using one = await box(place, proxy.port)
    const hot = new HotKey(one, () => pause(1))
    await until(() => new Set(hot.tokens.map(token => token >> 10n)).size > 3)
    proxy.replies = 'hold'
    const before = await hot.stalled()
    // Each turn takes at least a millisecond; a number has room for a thousand turns.
    expect(hot.tokens.at(-1)! & 1023n).toBeLessThan(100n)
    proxy.replies = 'pass'
    await until(() => hot.tokens.length > before)
    await hot.end()
  })
})
