import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEFAULT_TIMEOUTS, type Timeouts } from '../../src/engines/redis/clients/connection.js'
import { detectClient } from '../../src/engines/redis/clients/detect-client.js'
import type { RedisLink } from '../../src/engines/redis/clients/redis-link.js'
import { linkOver, linkTo } from '../../src/engines/redis/links.js'
import { parseRedisUrl } from '../../src/engines/redis/redis-url.js'
import { clientPackages } from '../support/redis/client-packages.js'
import { Heard } from '../support/redis/heard.js'
import { startRedisCluster, type RedisCluster } from '../support/servers/redis-cluster.js'
import { until } from '../support/servers/until.js'

const PATIENCE: Timeouts = { ...DEFAULT_TIMEOUTS, connect: 2000, answer: 1000, heartbeat: 200 }

type Open = (cluster: RedisCluster, heard: Heard) => Promise<{ link: RedisLink; end: () => void }>

const ways: [string, Open][] = clientPackages.flatMap(({ name, connectWith, cluster: clusterClient }) => [
  [
    `${name}, own connections`,
    async (cluster, listener) => {
      const place = parseRedisUrl(`redis+cluster://127.0.0.1:${cluster.masters[1]!.port}`)
      const link = linkTo(place, connectWith, PATIENCE)(listener)
      await link.connect()
      return { link, end: () => {} }
    },
  ],
  [
    `${name}, a given client`,
    async (cluster, listener) => {
      const given = await clusterClient(cluster.masters.map(({ host, port }) => ({ host, port })))
      const link = linkOver(detectClient(given.client), PATIENCE)(listener)
      await link.connect()
      return { link, end: given.close }
    },
  ],
])

/** Names of keys and channels. Each master has at least one of them. */
const NAMES = Array.from({ length: 12 }, (_, index) => `name ${index}`)

describe.each(ways)('a cluster over %s', (_, open) => {
  let cluster: RedisCluster
  let heard: Heard
  let link: RedisLink
  let end: () => void

  beforeAll(async () => {
    cluster = await startRedisCluster()
    heard = new Heard()
    ;({ link, end } = await open(cluster, heard))
  })
  afterAll(async () => {
    await link.close()
    end()
    await cluster.kill()
  })

  test('commands go to the master of their key, messages come from all', async () => {
    for (const name of NAMES) expect(await link.command(name, ['SET', name, `ü ${name}`])).toBe('OK')
    for (const name of NAMES) expect(await link.command(name, ['GET', name])).toBe(`ü ${name}`)
    const masters = await link.masters()
    const found = await Promise.all(masters.map(send => send(['DBSIZE'])))
    expect(found).toHaveLength(3)
    expect(found.every(size => (size as number) > 0)).toBe(true)
    expect(found.reduce<number>((sum, size) => sum + (size as number), 0)).toBe(NAMES.length)
    await Promise.all(NAMES.map(name => link.subscribe(name)))
    for (const name of NAMES) await link.command(name, ['SPUBLISH', name, 'ö'])
    await until(() => heard.messages.length === NAMES.length)
    expect(heard.messages.sort()).toEqual(NAMES.map(name => `${name}: ö`).sort())
    expect(heard.resubscriptions).toBe(0)
  })

  test('commands and messages of a slot continue while it moves', async () => {
    const key = '{moving}'
    await link.command(key, ['SET', `${key}a`, '1'])
    await link.subscribe(`${key}channel`)
    const slot = await cluster.slotOf(key)
    const from = await cluster.masterOf(key)
    const to = cluster.masters.find(master => master !== from)!
    await cluster.beginMoving(slot, from, to)
    // A missing key redirects to the new node, which creates it.
    expect(await link.command(key, ['SET', `${key}b`, '2'])).toBe('OK')
    expect(await link.command(key, ['GET', `${key}a`])).toBe('1')
    // One of the two keys is on each node, so the command must be retried until both are on one.
    const both = link.command(key, ['MGET', `${key}a`, `${key}b`])
    const counts = Array.from({ length: 20 }, () => link.command(key, ['INCR', `${key}count`]))
    await cluster.finishMoving(slot, from, to)
    expect(await both).toEqual(['1', '2'])
    expect(await Promise.all(counts)).toEqual(counts.map((_, index) => index + 1))
    expect(await link.command(key, ['INCR', `${key}count`])).toBe(counts.length + 1)
    await until(() => heard.resubscriptions > 0)
    heard.messages.length = 0
    await until(async () => (await to.command('SPUBLISH', `${key}channel`, 'here')) === 1)
    await until(() => heard.messages.includes(`${key}channel: here`))
  })
})

describe('a cluster with replicas', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster({ replicated: true })
  })
  afterAll(() => cluster.kill())

  test.each(ways)('a master dies and its replica takes over: %s', async (_, open) => {
    const heard = new Heard()
    const { link, end } = await open(cluster, heard)
    const name = NAMES[0]!
    await link.command(name, ['SET', name, '0'])
    await link.subscribe(name)
    const master = await cluster.masterOf(name)
    const replica = await cluster.replicaOf(master)
    await master.copied()
    await master.kill()
    await replica.command('CLUSTER', 'FAILOVER', 'TAKEOVER')
    await until(async () => (await link.command(name, ['INCR', name]).catch(() => 0)) === 1)
    await until(() => heard.resubscriptions > 0)
    await until(async () => (await replica.command('SPUBLISH', name, 'new master')) === 1)
    await until(() => heard.messages.includes(`${name}: new master`))
    await link.close()
    end()
    await master.start()
    await until(async () =>
      /role:slave[^]*master_link_status:up/.test(String(await master.command('INFO', 'replication'))),
    )
  })
})
