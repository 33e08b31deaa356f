import { expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { queued, soFar, until } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'

const KEY = 'pages'
const QUEUES = 'signalbox:1:{}:queues'
const REQUESTS = 'signalbox:1:{}:requests'

/** Acquires this number of read locks, each with a request of its own. */
function readers(box: Box, count: number, lease = 60_000) {
  const one = () => box.readWriteLock(KEY).read.acquire({ lease, ownRequest: true })
  return Promise.all(Array.from({ length: count }, one))
}

test.concurrent('a request for a key reads as few records beside a thousand readers as beside twenty', async () => {
  await using here = await RedisPlace.start()
  const [box, other] = [await here.box(), await here.box()]
  const read = async (): Promise<number> => {
    await here.server.command('CONFIG', 'RESETSTAT')
    const [grant] = await readers(other, 1)
    expect(await other.readWriteLock(KEY).write.tryAcquire()).toBeUndefined()
    await grant!.release()
    return (await here.server.calls())['hget']!
  }
  const some = await readers(box, 20)
  // The first scan that finds enough readers creates the group.
  await read()
  const few = await read()
  const all = [...some, ...(await readers(box, 980))]
  expect(await read()).toBe(few)
  await Promise.all(all.map(grant => grant.release()))
  await (await other.readWriteLock(KEY).write.acquire()).release()
  expect(await here.server.command('KEYS', '*')).toEqual(['signalbox:1:{}:numbers'])
})

test.concurrent('a thousand readers enter together after a writer, each with few records read', async () => {
  await using here = await RedisPlace.start()
  const [box, other] = [await here.box(), await here.box()]
  const writing = await box.readWriteLock(KEY).write.acquire()
  const entered = readers(other, 1000)
  await queued(box, KEY, 1000)
  await here.server.command('CONFIG', 'RESETSTAT')
  await writing.release()
  await entered
  expect((await here.server.calls())['hget']).toBeLessThan(60_000)
})

test.concurrent('readers whose held key another program has deleted keep no one out as a group', async () => {
  await using here = await RedisPlace.start()
  const [box, other] = [await here.box(), await here.box()]
  await readers(box, 20)
  const lock = other.readWriteLock(KEY).write
  expect(await lock.tryAcquire()).toBeUndefined()
  expect(await here.server.command('HEXISTS', REQUESTS, `#${KEY}`)).toBe(1)
  expect(await here.server.command('DEL', KEY)).toBe(1)
  await (await lock.acquire({ wait: 0 })).release()
})

test.concurrent('a group is right although an older version, which does not know it, removes a member', async () => {
  await using here = await RedisPlace.start()
  const box = await here.box()
  const living = await readers(box, 30)
  expect(await here.server.command('HEXISTS', REQUESTS, `#${KEY}`)).toBe(1)
  const [entry] = (await here.server.command('ZRANGE', QUEUES, '3', '3')) as [string]
  const id = entry.slice(`${KEY.length}:${KEY}:`.length + 16)
  await here.server.command('ZREM', QUEUES, entry)
  await here.server.command('HDEL', REQUESTS, id)
  const writing = box.readWriteLock(KEY).write.acquire({ wait: '10s' })
  await queued(box, KEY, 1)
  expect(await soFar(writing)).toBe('pending')
  await Promise.all(living.map(grant => grant.release().catch(() => undefined)))
  await until('the writer is in', async () => (await soFar(writing)) === 'fulfilled')
  await (await writing).release()
})
