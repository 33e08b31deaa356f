import { afterAll, beforeAll, expect, test } from 'vitest'
import { queued, timed } from '../../packages/conformance/src/time.js'
import { systemClock } from '../../src/base/clock.js'
import { WATCH_READ_INTERVAL } from '../../src/engine/wait-times.js'
import { ClosedError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { pause } from '../../src/base/pause.js'
import { boxWays } from '../support/redis/box-ways.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

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
  // Without a wake-up, the waiter would check again within forty seconds.
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
      // Writes before the client has reconnected, so no message reports the change.
      await store.put('key', round)
      const took = await timed(() => change)
      expect((await change).value!.value).toBe(round)
      expect(took).toBeLessThan(WATCH_READ_INTERVAL / 2)
    }
    await changes.return()
    await store.delete('key')
  },
)

test('the boxes of a process share their connections to a server, which the last one closes', async () => {
  await using own = await startRedis()
  const connections = async (): Promise<number> => {
    const list = String(await own.command('CLIENT', 'LIST'))
    // One of the connections runs this command.
    return list.trim().split('\n').length - 1
  }
  const boxes = await Promise.all(
    Array.from({ length: 10 }, (_, index) => open(`${own.url}?prefix=${index % 2}:`)),
  )
  expect(await connections()).toBe(1)
  // Boxes with the same prefix wait for each other, and are woken.
  await Promise.all(
    boxes.map(box => box.mutex('key').run(async () => pause(5, systemClock), { lease: '1m' })),
  )
  expect(await connections()).toBe(2)
  await using inOtherDatabase = await open(`${own.url}/1`)
  expect(await connections()).toBe(3)
  await inOtherDatabase.close()

  const last = boxes.pop()!
  const held = await last.mutex('key').acquire({ lease: '1m' })
  const waiting = boxes[1]!.mutex('key').acquire({ lease: '1m' })
  const refused = expect(waiting).rejects.toThrow(ClosedError)
  await queued(last, 'key', 1)
  await Promise.all(boxes.map(box => box.close()))
  await refused
  await held.release()
  await last.mutex('key').run(() => undefined)
  expect(await connections()).toBe(2)
  await last.close()
  await until(async () => (await connections()) === 0)
})
