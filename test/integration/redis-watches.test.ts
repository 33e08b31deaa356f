import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { timed } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { WATCH_READ_INTERVAL } from '../../src/engine/wait-times.js'
import { openBy } from '../support/redis/box-ways.js'
import { clientPackages } from '../support/redis/client-packages.js'
import { startRedisCluster, type RedisCluster } from '../support/servers/redis-cluster.js'

describe.each(clientPackages)('a watcher on a cluster with $name', tested => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster()
  })
  afterAll(() => cluster.kill())

  /** Expects that a watcher that sends no command receives a change that was made after the slot of its key moved. */
  async function receivesAcrossMove(box: Box, key: string): Promise<void> {
    await using writer = await open(cluster.url)
    const store = writer.store('s')
    const changes = box.store('s').watch(key)
    await changes.next()
    const change = changes.next()
    const from = await cluster.masterOf(key)
    const to = cluster.masters.find(master => master !== from)!
    const slot = await cluster.slotOf(key)
    await cluster.beginMoving(slot, from, to)
    await cluster.finishMoving(slot, from, to)
    const version = await store.put(key, 'changed')
    // The old node reports that the slot has moved.
    expect(await timed(() => change)).toBeLessThan(WATCH_READ_INTERVAL / 2)
    expect((await change).value).toEqual({ value: 'changed', version })
    // From then on, the watcher receives changes from the new node.
    const next = changes.next()
    await store.put(key, 'again')
    expect(await timed(() => next)).toBeLessThan(WATCH_READ_INTERVAL / 2)
    await changes.return()
  }

  test('sees a change after its slot has moved, over connections of its own', async () => {
    await using box = await openBy(tested, cluster.url)
    await receivesAcrossMove(box, '{own}')
  })

  test('sees a change after its slot has moved, with an existing client', async () => {
    const user = await tested.cluster(cluster.masters.map(({ host, port }) => ({ host, port })))
    const box = await open({ redis: user.client })
    await receivesAcrossMove(box, '{given}')
    await box.close()
    user.close()
  })
})
