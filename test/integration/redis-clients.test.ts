import { Redis } from 'ioredis'
import { Redis as Redis6 } from 'ioredis6'
import { createClient } from 'redis'
import { createClient as createClient6 } from 'redis6'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { DEFAULT_PATIENCE, type Address, type Connect } from '../../src/engines/redis/clients/connection.js'
import { ioredisConnect } from '../../src/engines/redis/clients/ioredis-connection.js'
import type { Login } from '../../src/engines/redis/clients/login.js'
import { nodeRedisConnect } from '../../src/engines/redis/clients/node-redis-connection.js'
import { ServerLink } from '../../src/engines/redis/clients/server-link.js'
import { startRedis } from '../servers/redis.js'
import { until } from '../servers/until.js'

const packages: [string, (address: Address, login: Login) => Connect][] = [
  ['ioredis 5', (address, login) => ioredisConnect(Redis, address, login)],
  ['ioredis 6', (address, login) => ioredisConnect(Redis6, address, login)],
  ['node-redis 5', (address, login) => nodeRedisConnect(createClient, address, login)],
  ['node-redis 6', (address, login) => nodeRedisConnect(createClient6, address, login)],
]

test.each(packages)('%s', async (_, connect) => {
  await using server = await startRedis()
  const heard: string[] = []
  const link = new ServerLink({
    name: server.url,
    connect: connect(
      { host: server.host, port: server.port, tls: false },
      { username: undefined, password: undefined, database: 1 },
    ),
    listener: {
      message: (channel, text) => heard.push(`${channel}: ${text}`),
      resubscribed: () => heard.push('resubscribed'),
    },
    clock: systemClock,
    patience: { ...DEFAULT_PATIENCE, answer: 300 },
  })
  await link.connect()
  expect(await link.command('', ['SET', 'k', 'ü'])).toBe('OK')
  expect(await link.command('', ['GET', 'k'])).toBe('ü')
  await expect(link.command('', ['LPUSH', 'k', 'x'])).rejects.toMatchObject({ code: 'WRONGTYPE' })
  await link.subscribe('news')
  await server.command('PUBLISH', 'news', 'ö')
  await until(() => heard.length === 1)
  expect(heard).toEqual(['news: ö'])
  server.pause()
  await expect(link.command('', ['GET', 'k'])).rejects.toMatchObject({ code: 'INDETERMINATE' })
  await expect(link.command('', ['GET', 'k'])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  server.resume()
  await until(async () => (await link.command('', ['GET', 'k']).catch(() => '')) === 'ü')
  await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await until(() => heard.length === 2)
  expect(heard[1]).toBe('resubscribed')
  await server.restart()
  await until(async () => (await link.command('', ['GET', 'k']).catch(() => '')) === null)
  expect(link.epoch).toBe(3)
  await link.close()
})
