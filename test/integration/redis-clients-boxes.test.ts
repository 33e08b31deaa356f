import { afterAll, beforeAll, expect, test } from 'vitest'
import { queued, timed } from '../../packages/conformance/src/time.js'
import { WATCH_READ_INTERVAL } from '../../src/engine/contract.js'
import { boxWays } from '../support/redis/box-ways.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.kill())

test.each(boxWays)('a waiter is woken and a watcher sees a change over $name', async ({ open }) => {
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

test.each(boxWays)(
  'a watcher sees a change although the server has cut the connection for messages, over $name',
  async ({ open }) => {
    await using watcher = await open(server.url)
    await using writer = await open(server.url)
    const store = writer.box.store('cut')
    const changes = watcher.box.store('cut').watch<number>('key')
    await changes.next()
    for (let round = 1; round <= 2; round++) {
      const change = changes.next()
      await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
      // It comes before the client has reconnected, so no message reports it.
      await store.put('key', round)
      const took = await timed(() => change)
      expect((await change).value!.value).toBe(round)
      expect(took).toBeLessThan(WATCH_READ_INTERVAL / 2)
    }
    await changes.return()
    await store.delete('key')
  },
)
