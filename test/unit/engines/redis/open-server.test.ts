import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { InvalidArgumentError } from '../../../../src/base/errors.js'
import { openRedisServer } from '../../../../src/engines/redis/index.js'

test.each([
  ['redis+cluster://a,b', 'redis+cluster://a,b must be a single server, not a cluster'],
  ['redis://a?layout=redisson', 'redis://a must have layout \'string\', not "redisson"'],
  ['redis://a?prefix=app:\n', 'must have no white space at its end'],
  ['redis://me:123/secret@a', 'must have // after the scheme and one @'],
  ['redis://me:123?secret@a/0', 'must have // after the scheme and one @'],
])('the server %j is rejected', async (url, reason) => {
  const error: unknown = await openRedisServer(url).catch((rejection: unknown) => rejection)
  expect(error).toBeInstanceOf(InvalidArgumentError)
  expect((error as Error).message).toContain(reason)
  expect(String(error)).not.toContain('secret')
})

test('a client of a cluster is rejected, and a client of a server adds its key prefix', async () => {
  const cluster = new Cluster([], { lazyConnect: true })
  await expect(openRedisServer({ redis: cluster })).rejects.toThrow(
    'redis must be a single server, not a cluster',
  )
  const client = new Redis({ lazyConnect: true, keyPrefix: 'shop:' })
  const server = await openRedisServer({ redis: client, prefix: 'app:' })
  expect(server.prefix).toBe('shop:app:')
  await server.leave()
  client.disconnect()
})
