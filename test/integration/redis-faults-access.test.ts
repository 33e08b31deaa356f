import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { pause, queued, until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/open.js'
import { doEverything } from '../support/redis/everything.js'
import { complaintOf } from '../support/redis/outcome.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { startRedis, startRedisServers, type RedisServer } from '../support/servers/redis.js'

const page = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
/** The permissions that a user needs, from the page on Redis. */
const RIGHTS = /^ACL SETUSER locks on >password (.*?)^```/ms.exec(page)![1]!.trim().split(/\s+/)
/** Additional permissions for a Cluster, Sentinels and `minReplicas`. */
const ON_CLUSTER = alsoFor('Cluster')
const BEHIND_SENTINEL = alsoFor('Sentinel')
const WITH_REPLICAS = alsoFor('`minReplicas`')
/** The permissions that a user of a Sentinel needs, from the same page. */
const OF_SENTINEL = /^ACL SETUSER locks on >password (.*sentinel.*)$/m.exec(page)![1]!.split(' ')

function alsoFor(what: string): string[] {
  return new RegExp(`^- ${what} also needs \`(.*?)\``, 'ms').exec(page)![1]!.split(' ')
}

function allow(server: RedisServer, rights: readonly string[]): Promise<unknown> {
  return server.command('ACL', 'SETUSER', 'locks', 'on', '>password', ...rights)
}

/** Lists the different commands that a server denied to users. */
async function refused(server: RedisServer): Promise<string[]> {
  const log = (await server.command('ACL', 'LOG')) as string[][]
  return [...new Set(log.map(entry => entry[entry.indexOf('object') + 1]!))]
}

/** Returns the commands among permissions. */
function commandsOf(rights: readonly string[]): string[] {
  return rights.filter(right => right.startsWith('+')).map(right => right.slice(1))
}

function asUser(url: string): string {
  return `${url.replace('//', '//locks:password@')}?prefix=app:`
}

test('every call works with the rights that the page names, and each right is needed', async () => {
  await using server = await startRedis()
  await allow(server, RIGHTS)
  await server.command('CONFIG', 'RESETSTAT')
  await doEverything(asUser(server.url))
  // A server without free memory rejects functions, but accepts scripts that free memory.
  await using box = await open(asUser(server.url))
  const grant = await box.mutex('key').acquire()
  await server.command('CONFIG', 'SET', 'maxmemory', '1')
  await grant.release()
  expect(await refused(server)).toEqual([])
  expect(Object.keys(await server.calls())).toEqual(expect.arrayContaining(commandsOf(RIGHTS)))
})

test('every call works on a Cluster with the rights that the page names for it', async () => {
  await using cluster = await startRedisCluster()
  await Promise.all(cluster.nodes.map(node => allow(node, [...RIGHTS, ...ON_CLUSTER])))
  // All keys are in one slot, because a box rejects transactions over several slots.
  await doEverything(asUser(cluster.url).replace('app:', 'app:{1}'))
  await doEverything(asUser(cluster.url).replace('app:', 'app:{2}'))
  for (const node of cluster.nodes) expect(await refused(node)).toEqual([])
})

test('every call works behind a Sentinel with the rights that the page names for it', async () => {
  await using servers = await startRedisWithSentinel()
  const { master, replica, sentinel, url } = servers
  const rights = [...RIGHTS, ...BEHIND_SENTINEL, ...WITH_REPLICAS]
  for (const server of [master, replica]) await allow(server, rights)
  await allow(sentinel, OF_SENTINEL)
  await sentinel.command('ACL', 'SETUSER', 'default', 'resetpass')
  await master.command('CONFIG', 'RESETSTAT')
  await doEverything(`${asUser(url)}&minReplicas=1`)
  for (const server of [master, replica]) expect(await refused(server)).toEqual([])
  expect(Object.keys(await master.calls())).toEqual(
    expect.arrayContaining(commandsOf([...BEHIND_SENTINEL, ...WITH_REPLICAS])),
  )
})

test('locks over a quorum work with the same rights on each server', async () => {
  const servers = await startRedisServers(3)
  try {
    for (const server of servers) await allow(server, RIGHTS)
    const url = asUser(quorumUrl(servers))
    await using one = await open(url)
    await using other = await open(url)
    const held = await one.mutex('key').acquire({ lease: 600 })
    const asked = other.mutex('key').acquire()
    await queued(one, 'key', 1)
    // The grant is renewed more than once in the meantime.
    await pause(800)
    held.assertHeld()
    await held.release()
    const next = await asked
    expect(await one.forceRelease('key', next.token)).toBe(true)
    await until('it is told', () => next.signal.aborted)
    await (await one.semaphore('permits', { max: 2 }).acquire()).release()
    const write = await one.readWriteLock('shared').write.acquire()
    await write.downgrade()
    expect(await other.revoke(one.session)).toBe(1)
    for (const server of servers) expect(await refused(server)).toEqual([])
  } finally {
    await Promise.all(servers.map(server => server.kill()))
  }
})

test('locks on hashes of Redisson work with the rights that the page names for them', async () => {
  await using server = await startRedis()
  const [, keys, channels, commands] = /also needs `(\S+)`, `(\S+)`,\s+`(.*)`/.exec(page)!
  await allow(server, [...RIGHTS, keys!, channels!, ...commands!.split(' ')])
  const url = `${asUser(server.url)}&layout=redisson`
  await using one = await open(url)
  await using other = await open(url)
  await server.command('HSET', 'app:rights', 'another:1', 1)
  const first = one.mutex('rights').acquire()
  await queued(other, 'rights', 1)
  await server.command('RPUSH', 'redisson_lock_queue:{app:rights}', 'another:1')
  await server.command('ZADD', 'redisson_lock_timeout:{app:rights}', Date.now() + 60_000, 'another:1')
  await server.command('DEL', 'app:rights')
  const grant = await first
  const second = other.readWriteLock('rights').write.acquire()
  await grant.release()
  await (await second).downgrade()
  await (await second).release()
  expect(await refused(server)).toEqual([])
})

test('without a right to channels no write is partial, and locks work', async () => {
  await using server = await startRedis()
  // Resets the channels, because a new user has none by default.
  await allow(server, [...RIGHTS, 'resetchannels'])
  await using owner = await open(`${server.url}?prefix=app:`)
  await owner.store('s').put('key', 'value')
  await using box = await open(asUser(server.url))
  await using other = await open(asUser(server.url))
  const store = box.store('s')
  for (const attempt of [
    () => store.put('key', 'changed'),
    () => store.delete('key'),
    () => store.transaction(['key', 'more'], tx => tx.put('more', 'changed'), { id: 'once' }),
  ]) {
    expect(await complaintOf(attempt())).toMatch(/^UNAVAILABLE: could not write .* on .*channel/)
  }
  expect((await owner.store('s').get('key'))!.value).toBe('value')
  expect(await owner.store('s').get('more')).toBeUndefined()
  expect(await server.command('EXISTS', 'app:signalbox:1:{}:ids:s/key')).toBe(0)
  // Nothing wakes the waiter, but the released key is free, and the next waiter that checks in gets it.
  const held = await box.mutex('key').acquire()
  const asked = other.mutex('key').acquire({ lease: 600 })
  await queued(owner, 'key', 1)
  await held.release()
  await (await asked).release()
  const taken = await box.mutex('key').acquire()
  expect(await other.forceRelease('key', taken.token)).toBe(true)
})
