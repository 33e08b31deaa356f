import { afterAll, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { LostError } from '../../src/base/errors.js'
import type { Grant, TransactionOutcome } from '../../src/index.js'
import { pause, queued, until } from '../../packages/conformance/src/time.js'
import { Names } from '../../src/engines/redis/names.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { boxWays } from '../support/redis/box-ways.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedis, startRedisServers, type RedisServer } from '../support/servers/redis.js'

/** Lease of renewed grants, in milliseconds. */
const LEASE = 1500

const master = await startRedis()
const replica = await startRedis({ config: [`replicaof 127.0.0.1 ${master.port}`] })
await master.copied()

afterAll(async () => {
  await replica.kill()
  await master.kill()
})

test('with minReplicas a grant or commit is on a replica, and fails without one', async () => {
  await using box = await open(`${master.url}?minReplicas=1`)
  const store = box.store('s')
  for (let round = 0; round < 20; round++) {
    const grant = await box.mutex('key').acquire()
    expect(await replica.command('GET', 'key')).toContain('signalbox/1')
    await store.put('value', round)
    expect(await replica.command('GET', 'signalbox:1:{}:value:s/value')).toMatch(new RegExp(` ${round}$`))
    await grant.release()
  }
  replica.pause()
  try {
    const told = (key: string): object => ({
      code: 'INDETERMINATE',
      key,
      message: expect.stringMatching(`${key}.* 0 of 1 replicas`) as string,
    })
    // Operations that need no replica do not wait for others in the same message.
    const read = store.get('value')
    await expect(box.mutex('key').acquire()).rejects.toMatchObject(told('key'))
    expect(await read).toMatchObject({ value: 19 })
    await expect(box.mutex('key', 'other').acquire()).rejects.toMatchObject(told('key, other'))
    await expect(store.put('value', 'unsure')).rejects.toMatchObject(told('s/value'))
    await expect(
      store.transaction(['value', 'more'], transaction => transaction.put('more', 1)),
    ).rejects.toMatchObject(told('s/more, s/value'))
    // The box releases the lock in the background, so that no other request waits for a grant without a holder.
    await until('the key is free', async () => (await master.command('EXISTS', 'key')) === 0)
  } finally {
    replica.resume()
  }
  await pause(100)
  await (await box.mutex('key').acquire({ wait: '10s' })).release()
})

test('a renewal that no replica has does not count, so the lease ends before a failover grants the key', async () => {
  await using old = await startRedis()
  await using network = await Proxy.start(old.port)
  await using next = await startRedis({ config: [`replicaof 127.0.0.1 ${network.port}`] })
  await old.copied()
  const holders = await Promise.all(
    boxWays.map(async ({ name: key, open: openBox }) => {
      const opened = await openBox(old.url, { minReplicas: 1 })
      return { key, opened, held: await opened.box.mutex(key).acquire({ lease: LEASE }) }
    }),
  )
  // Renewals that have reached the replica extend the lease.
  await pause(LEASE * 1.5)
  for (const { held } of holders) held.assertHeld()
  network.replies = 'lose'
  await next.command('REPLICAOF', 'NO', 'ONE')
  const cutAt = performance.now()
  await using other = await open(next.url)
  const granted = holders.map(async ({ key, held }) => {
    const grant = await other.mutex(key).acquire()
    expect(() => held.assertHeld()).toThrow(LostError)
    expect(grant.token).toBeGreaterThan(held.token)
  })
  for (const { key } of holders)
    await until('the old master has renewed it', async () => {
      const left = Number(await old.command('PTTL', key))
      return performance.now() + left > cutAt + LEASE + 100
    })
  await pause(cutAt + LEASE - performance.now())
  for (const { held } of holders) expect(() => held.assertHeld()).toThrow(LostError)
  await Promise.all(granted)
  for (const { opened } of holders) await opened[Symbol.asyncDispose]()
})

test('a repeated commit does not count as committed if no replica has it', async () => {
  await using old = await startRedis()
  await using copy = await startRedis({ config: [`replicaof 127.0.0.1 ${old.port}`] })
  await old.copied()
  await using box = await open(`${old.url}?minReplicas=1`)
  const store = box.store('s')
  const change = (inside: () => void): Promise<TransactionOutcome<void>> =>
    store.transaction(
      ['value'],
      transaction => {
        inside()
        transaction.put('value', 1)
      },
      { id: 'change' },
    )
  await expect(change(() => copy.pause())).rejects.toMatchObject({ code: 'INDETERMINATE' })
  copy.resume()
  // A caller that learns that the change was applied before finds it on the replica.
  expect(await change(() => undefined)).toMatchObject({ applied: false })
  expect(await copy.command('GET', 'signalbox:1:{}:value:s/value')).toMatch(/ 1$/)
})

/** Expects that a renewed grant lasts while its renewals reach a replica, and is lost while that replica is stopped. */
async function endsWithout(replica: RedisServer, held: Grant, lease = LEASE): Promise<void> {
  await pause(lease)
  held.assertHeld()
  replica.pause()
  try {
    await pause(lease)
    expect(() => held.assertHeld()).toThrow(LostError)
  } finally {
    replica.resume()
  }
}

test('on a Cluster a renewal counts only when a replica of the master that did it has it', async () => {
  await using cluster = await startRedisCluster({ replicated: true })
  await using box = await open(`${cluster.url}?minReplicas=1`)
  await using other = await open(cluster.url)
  const from = await cluster.masterOf('key')
  await endsWithout(await cluster.replicaOf(from), await box.mutex('key').acquire({ lease: LEASE }))

  // While a slot moves, the new master executes a command if all its keys have moved.
  const held = await box.mutex('key').acquire({ lease: LEASE })
  const asked = other.mutex('key').acquire()
  await queued(other, 'key', 1)
  // The new master executes no command as long as one of its keys is missing.
  const { signs } = new Names('', true).group('key')
  await until('a sign of life has come', async () => (await from.command('EXISTS', signs)) === 1)
  const to = cluster.masters.find(master => master !== from)!
  const slot = await cluster.slotOf('key')
  await cluster.beginMoving(slot, from, to)
  await cluster.moveKeys(slot, from, to)
  await endsWithout(await cluster.replicaOf(to), held)
  await cluster.finishMoving(slot, from, to)
  await asked
})

test('a renewal needs a majority of servers whose replicas have it', async () => {
  const masters = await startRedisServers(3)
  const replicas = await Promise.all(
    masters.map(({ port }) => startRedis({ config: [`replicaof 127.0.0.1 ${port}`] })),
  )
  try {
    await Promise.all(masters.map(master => master.copied()))
    await using box = await open(quorumUrl(masters, '?minReplicas=1'))
    // The grant may have only two votes until a renewal with a missing vote has failed.
    const lease = 4000
    const held = await box.mutex('key').acquire({ lease })
    const [first, second] = replicas as [RedisServer, RedisServer]
    first.pause()
    await pause(lease)
    held.assertHeld()
    await endsWithout(second, held, lease)
  } finally {
    await Promise.all([...replicas, ...masters].map(server => server.kill()))
  }
})

test('a downgrade that no replica has is reported, and the grant lives on when replicas are back', async () => {
  await using old = await startRedis()
  await using copy = await startRedis({ config: [`replicaof 127.0.0.1 ${old.port}`] })
  await old.copied()
  await using box = await open(`${old.url}?minReplicas=1`)
  const held = await box.readWriteLock('key').write.acquire({ lease: 4000 })
  copy.pause()
  await expect(held.downgrade()).rejects.toMatchObject({ code: 'INDETERMINATE' })
  copy.resume()
  await pause(5000)
  held.assertHeld()
  await held.release()
})
