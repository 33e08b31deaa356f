import { afterAll, beforeAll, expect, test } from 'vitest'
import { queued, timed } from '../../src/conformance/time.js'
import { boxWays } from '../redis/box-ways.js'
import { startRedis, type RedisServer } from '../servers/redis.js'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.kill())

test.each(boxWays)('a waiter is woken and a change is heard over $name', async ({ open }) => {
  await using first = await open(server.url)
  await using second = await open(server.url)
  const [one, other] = [first.box, second.box]
  const held = await one.mutex('key').acquire({ lease: '1m' })
  const asked = other.mutex('key').acquire({ lease: '1m' })
  await queued(one, 'key', 1)
  // It would look again within forty seconds.
  expect(await timed(async () => held.release().then(() => asked))).toBeLessThan(10_000)
  expect((await asked).token).toBeGreaterThan(held.token)
  await (await asked).release()

  const changes = other.store('s').watch('a')
  await changes.next()
  const change = changes.next()
  await one.store('s').transaction(['a', 'b'], tx => {
    tx.put('a', { text: 'größer', list: [1, 2.5] })
    tx.put('b', 1)
  })
  expect((await change).value).toMatchObject({ value: { text: 'größer', list: [1, 2.5] } })
  await changes.return()
  await other.store('s').transaction(['a', 'b'], tx => tx.put('b', tx.get<number>('b')! + 1))
  expect((await one.store('s').get('b'))!.value).toBe(2)
  for (const key of ['a', 'b']) await one.store('s').delete(key)
})
