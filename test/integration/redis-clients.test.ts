import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { DEFAULT_PATIENCE, type Patience } from '../../src/engines/redis/clients/connection.js'
import { givenServer } from '../../src/engines/redis/clients/given-link.js'
import { ownServer } from '../../src/engines/redis/clients/own-server.js'
import { recognise } from '../../src/engines/redis/clients/recognise.js'
import type { RedisLink } from '../../src/engines/redis/clients/redis-link.js'
import { clientPackages } from '../redis/client-packages.js'
import { Heard } from '../redis/heard.js'
import { startRedis, type RedisServer } from '../servers/redis.js'
import { until } from '../servers/until.js'

const NOBODY = { username: undefined, password: undefined, database: 0 }
const PATIENCE: Patience = { ...DEFAULT_PATIENCE, answer: 300, heartbeat: 100 }

interface Way {
  readonly isOwn: boolean
  open(server: RedisServer, heard: Heard): Promise<{ link: RedisLink; end: () => void }>
}

const ways: [string, Way][] = clientPackages.flatMap(
  ({ name, protocols, connectWith, client }): [string, Way][] => [
    [
      `${name}, own connections`,
      {
        isOwn: true,
        async open({ host, port, url }, listener) {
          const connect = connectWith({ host, port, tls: false }, NOBODY)
          const link = ownServer({ name: url, connect, listener, clock: systemClock, patience: PATIENCE })
          await link.connect()
          return { link, end: () => {} }
        },
      },
    ],
    ...protocols.map((resp): [string, Way] => [
      `${name}, a given client, RESP${resp}`,
      {
        isOwn: false,
        async open({ url }, listener) {
          const given = await client(url, resp)
          const recognised = recognise(given.client)
          if (recognised.kind !== 'server') throw new Error('a client was taken for a cluster')
          const link = givenServer(recognised.client, listener, systemClock, PATIENCE)
          await link.connect()
          return { link, end: given.close }
        },
      },
    ]),
  ],
)

describe.each(ways)('%s', (_, { isOwn, open }) => {
  test('commands, messages, a frozen server, cut connections, a restart', async () => {
    await using server = await startRedis()
    const heard = new Heard()
    const { link, end } = await open(server, heard)
    expect(await link.command('', ['SET', 'k', 'ü'])).toBe('OK')
    expect(await link.command('', ['GET', 'k'])).toBe('ü')
    await expect(link.command('', ['LPUSH', 'k', 'x'])).rejects.toMatchObject({ code: 'WRONGTYPE' })
    await link.subscribe('news')
    await server.command('PUBLISH', 'news', 'ö')
    await until(() => heard.messages.length === 1)
    expect(heard.messages).toEqual(['news: ö'])
    const { epoch } = link
    server.pause()
    await expect(link.command('', ['GET', 'k'])).rejects.toMatchObject({ code: 'INDETERMINATE' })
    if (isOwn) await expect(link.command('', ['GET', 'k'])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    server.resume()
    await until(async () => (await link.command('', ['GET', 'k']).catch(() => '')) === 'ü')
    const before = heard.resubscriptions
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await until(() => heard.resubscriptions > before)
    await server.command('PUBLISH', 'news', 'again')
    await until(() => heard.messages.length === 2)
    await server.restart()
    await until(async () => (await link.command('', ['GET', 'k']).catch(() => '')) === null)
    expect(link.epoch).toBeGreaterThan(epoch)
    await link.close()
    end()
  })
})
