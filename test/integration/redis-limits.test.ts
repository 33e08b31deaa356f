import { expect, test } from 'vitest'
import { open } from '../../src/index.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { compareLimits } from '../support/redis/limit-histories.js'
import { codeOf } from '../support/redis/outcome.js'
import { RedisPlace } from '../support/redis/place.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { startRedis } from '../support/servers/redis.js'

const HISTORIES = 100

test(`the script of limits decides as the TypeScript rules do, over ${HISTORIES} random histories`, async () => {
  await using server = await startRedis()
  await compareLimits(server, 1, HISTORIES)
})

test('an idle limiter leaves nothing behind after its window', async () => {
  await using here = await RedisPlace.start()
  const box = await here.box()
  const limiter = box.limiter('api', { limit: 5, per: 300 })
  await limiter.acquire(2)
  await limiter.key('amy').acquire()
  expect(await here.server.command('DBSIZE')).toBe(2)
  // Acquires many permits. The server stores most of them in a compact form.
  const many = box.limiter('many', { limit: 1000, per: 300 })
  for (let turn = 0; turn < 200; turn++) await many.acquire()
  await pause(300)
  await until('it is gone', async () => (await here.server.command('DBSIZE')) === 0)
})

test("another program's data in place of a limit is reported, with its name", async () => {
  await using here = await RedisPlace.start()
  const box = await here.box()
  const limiters = ['text', 'long', 'list'].map(name => box.limiter(name, { limit: 1000, per: 60_000 }))
  await Promise.all(limiters.map(limiter => limiter.acquire()))
  const names = ((await here.server.command('KEYS', '*limit*')) as string[]).sort()
  expect(names).toHaveLength(3)
  for (const name of names) {
    await here.server.command('DEL', name)
    if (name.includes('list')) await here.server.command('LPUSH', name, 'x')
    else await here.server.command('SET', name, name.includes('long') ? 'z'.repeat(5000) : 'junk')
  }
  for (const limiter of limiters)
    await expect(limiter.acquire()).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      key: expect.stringMatching(/^(text|long|list)$/) as string,
      message: expect.stringContaining('another program has written to') as string,
    })
  await here.server.command('DEL', ...names)
  await Promise.all(limiters.map(limiter => limiter.acquire()))
})

test('a period continues over a restart of a server that keeps its data', async () => {
  await using here = await RedisPlace.start({ config: ['appendonly yes', 'appendfsync always'] })
  const box = await here.box()
  const limiter = box.limiter('yearly', { limit: 3, per: '366d', window: 'calendar' })
  await limiter.acquire(2)
  await here.server.kill()
  await here.server.start()
  await until('it is back', async () => (await codeOf(limiter.explain())) === undefined)
  expect((await limiter.explain()).limits[0]!.remaining).toBe(1)
  expect(await limiter.tryAcquire(2)).toBeUndefined()
  expect(await limiter.tryAcquire()).toBeDefined()
  expect(await limiter.tryAcquire()).toBeUndefined()
})

test('a limit continues after a failover from the state of the replica', async () => {
  await using servers = await startRedisWithSentinel()
  await using one = await open(servers.url)
  await using other = await open(servers.url)
  const options = { limit: 3, per: '5m' } as const
  await one.limiter('api', options).acquire(2)
  const waiting = other.limiter('other', { limit: 2, per: 700, onUnavailable: 'closed' })
  await waiting.acquire(2)
  await servers.master.copied()
  const asked = waiting.acquire()
  await servers.failover()
  // The old master accepts writes until the Sentinel has made it a replica, and these are lost.
  await servers.master.kill()
  await asked
  for (const box of [one, other]) {
    const isKnown = async () => (await codeOf(box.limiter('api', options).explain())) === undefined
    await until('it is known again', isKnown)
  }
  expect(await other.limiter('api', options).tryAcquire(2)).toBeUndefined()
  expect(await other.limiter('api', options).tryAcquire()).toBeDefined()
  expect(await one.limiter('api', options).tryAcquire()).toBeUndefined()
})
