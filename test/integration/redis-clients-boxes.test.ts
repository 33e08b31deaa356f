import { afterAll, expect, test } from 'vitest'
import { queued, timed } from '../../packages/conformance/src/time.js'
import { systemClock } from '../../src/base/clock.js'
import { open } from '../../src/open.js'
import { pause } from '../../src/base/pause.js'
import { boxWays } from '../support/redis/box-ways.js'
import { startRedis } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

const server = await startRedis()

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
  await Promise.all(boxes.map(box => box.close()))
  await last.mutex('key').run(() => undefined)
  expect(await connections()).toBe(2)
  await last.close()
  await until(async () => (await connections()) === 0)
})
