import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { doEverything } from '../redis/everything.js'
import { complaintOf } from '../redis/outcome.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

const page = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
/** What the page on Redis names as all that a user needs. */
const RIGHTS = /^ACL SETUSER locks on >password (.*?)^```/ms.exec(page)![1]!.trim().split(/\s+/)
/** What it names beside that, for a Cluster. */
const ON_CLUSTER = /Cluster adds `(.*?)`/s.exec(page)![1]!.split(' ')

function allow(server: RedisServer, rights: readonly string[]): Promise<unknown> {
  return server.command('ACL', 'SETUSER', 'locks', 'on', '>password', ...rights)
}

/** What users were refused on a server, each once. */
async function refused(server: RedisServer): Promise<string[]> {
  const log = (await server.command('ACL', 'LOG')) as string[][]
  return [...new Set(log.map(entry => entry[entry.indexOf('object') + 1]!))]
}

/** The commands among rights. */
function commandsOf(rights: readonly string[]): string[] {
  return rights.filter(right => right.startsWith('+')).map(right => right.slice(1))
}

function asUser(url: string): string {
  return `${url.replace('//', '//locks:password@')}?prefix=app:`
}

test('everything goes with the rights that the page names, and none of them is too many', async () => {
  await using server = await startRedis()
  await allow(server, RIGHTS)
  await server.command('CONFIG', 'RESETSTAT')
  await doEverything(asUser(server.url))
  expect(await refused(server)).toEqual([])
  expect(Object.keys(await server.calls())).toEqual(expect.arrayContaining(commandsOf(RIGHTS)))
})

test('everything goes on a Cluster with those that it names for that', async () => {
  await using cluster = await startRedisCluster()
  await Promise.all(cluster.nodes.map(node => allow(node, [...RIGHTS, ...ON_CLUSTER])))
  // One slot: transactions over several are refused there.
  await doEverything(asUser(cluster.url).replace('app:', 'app:{1}'))
  await doEverything(asUser(cluster.url).replace('app:', 'app:{2}'))
  for (const node of cluster.nodes) expect(await refused(node)).toEqual([])
})

test('names that the rights do not cover are a typed error, and what is there stays', async () => {
  await using server = await startRedis()
  await allow(server, RIGHTS)
  await using owner = await open(server.url)
  const held = await owner.mutex('key').acquire()
  await owner.store('s').put('key', 'value')
  await using box = await open(server.url.replace('//', '//locks:password@'))
  for (const attempt of [
    () => box.mutex('key').acquire(),
    () => box.mutex('other').tryAcquire(),
    () => box.semaphore('permits', { permits: 1 }).acquire(),
    () => box.store('s').get('key'),
    () => box.store('s').put('key', 'changed'),
    () => box.store('s').transaction(['key'], transaction => transaction.put('key', 'changed')),
  ]) {
    expect(await complaintOf(attempt())).toMatch(/^UNAVAILABLE: .*NOPERM/)
  }
  expect((await owner.store('s').get('key'))!.value).toBe('value')
  held.assertHeld()
  await held.release()
})

test('a right that is taken away is a typed error of what needs it', async () => {
  await using server = await startRedis()
  await allow(server, RIGHTS)
  await using box = await open(asUser(server.url))
  const held = await box.mutex('key').acquire()
  const readers = [
    await box.readWriteLock('shared').read.acquire(),
    await box.readWriteLock('shared').read.acquire(),
  ]
  await allow(server, ['-hgetall'])
  expect(await complaintOf(box.inspect().next())).toMatch(/^UNAVAILABLE: inspect was refused .*can't run/)
  await allow(server, ['+hgetall', '-del'])
  expect(await complaintOf(box.forceRelease('key', held.token))).toMatch(/^UNAVAILABLE: take was refused/)
  expect(await complaintOf(held.release())).toMatch(/^INDETERMINATE: .*can't run/)
  await allow(server, ['+del'])
  // What could not be given back then is given back now.
  await expect.poll(() => server.command('EXISTS', 'app:key')).toBe(0)
  for (const reader of readers) await reader.release()
})
