import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, test } from 'vitest'
import { InvalidArgumentError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { queued } from '../../packages/conformance/src/time.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers, type RedisServer } from '../support/servers/redis.js'

test('existing clients of either package are used, and stay open when the box is closed', async () => {
  const servers = (await startRedisServers(3)) as [RedisServer, RedisServer, RedisServer]
  const first = new Redis({ host: servers[0].host, port: servers[0].port })
  const second = new Redis({ host: servers[1].host, port: servers[1].port })
  const third = createClient({ url: servers[2].url })
  await third.connect()
  const other = await open(quorumUrl(servers, '?prefix=app:'))
  {
    await using box = await open({ redisQuorum: [first, second, third], prefix: 'app:' })
    const held = await box.mutex('key').acquire()
    expect(await other.mutex('key').tryAcquire()).toBeUndefined()
    const waiting = other.mutex('key').acquire()
    await queued(other, 'key', 1)
    await held.release()
    const next = await waiting
    expect(next.token).toBeGreaterThan(held.token)
    await next.release()
  }
  expect(await Promise.all([first.ping(), second.ping(), third.ping()])).toEqual(['PONG', 'PONG', 'PONG'])
  await other.close()
  first.disconnect()
  second.disconnect()
  third.destroy()
})

test('anything but a list of clients of different servers is refused', async () => {
  const client = new Redis({ lazyConnect: true })
  for (const redisQuorum of [client, [], [client, client, client], [client, 5, client], undefined]) {
    const opening = open({ redisQuorum } as unknown as Parameters<typeof open>[0])
    await expect(opening).rejects.toThrow(InvalidArgumentError)
  }
  client.disconnect()
})
