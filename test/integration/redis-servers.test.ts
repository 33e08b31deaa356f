import { expect, test } from 'vitest'
import { startRedis } from '../support/servers/redis.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'

test('a server answers, and after a restart it is empty', async () => {
  await using server = await startRedis()
  await server.command('SET', 'a', 'ü')
  expect(await server.command('GET', 'a')).toBe('ü')
  await server.restart()
  expect(await server.command('GET', 'a')).toBeNull()
  expect(await server.calls()).toMatchObject({ get: 1 })
})

test('a cluster serves every slot, and a slot can be moved', async () => {
  await using cluster = await startRedisCluster()
  const from = await cluster.masterOf('k')
  const to = cluster.masters.find(master => master !== from)!
  await from.command('SET', 'k', '1')
  const slot = await cluster.slotOf('k')
  await cluster.beginMoving(slot, from, to)
  await expect(from.command('GET', '{k}other')).rejects.toThrow(/^ASK/)
  await cluster.finishMoving(slot, from, to)
  await expect(from.command('GET', 'k')).rejects.toThrow(/^MOVED/)
  expect(await to.command('GET', 'k')).toBe('1')
  expect(await cluster.masterOf('k')).toBe(to)
})

test('a Sentinel fails over', async () => {
  await using servers = await startRedisWithSentinel()
  expect(await servers.masterPort()).toBe(servers.master.port)
  await servers.failover()
  expect(await servers.masterPort()).toBe(servers.replica.port)
})
