import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RedisLink } from '../../src/engines/redis/clients/redis-link.js'
import { linkWays, type OpenLink } from '../support/redis/link-ways.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

const UNUSUAL = [
  '',
  'ü',
  '日本語',
  '🚂🚃',
  'a\0b',
  'a\r\nb',
  '"\'\\',
  '\u{10FFFF}',
  ' '.repeat(3),
  'x'.repeat(100_000),
]

describe.each(linkWays)('a link over $name', ({ isOwn, open }) => {
  let server: RedisServer
  let opened: OpenLink
  let link: RedisLink
  const run = (...args: string[]) => link.command('', args)

  beforeAll(async () => {
    server = await startRedis()
    opened = await open(server)
    ;({ link } = opened)
  })
  beforeEach(async () => {
    await server.command('FLUSHALL')
    opened.heard.messages.length = 0
  })
  afterAll(async () => {
    await opened[Symbol.asyncDispose]()
    await server.kill()
  })

  test('text is stored and read unchanged', async () => {
    for (const text of UNUSUAL) {
      expect(await run('SET', `key ${text}`, text)).toBe('OK')
      expect(await run('GET', `key ${text}`)).toBe(text)
      expect(await run('EVAL', 'return {KEYS[1], ARGV[1]}', '1', text, `${text}!`)).toEqual([
        text,
        `${text}!`,
      ])
    }
    expect(await server.command('GET', 'key 日本語')).toBe('日本語')
  })

  test('replies are the same in both protocols', async () => {
    expect(await run('PING')).toBe('PONG')
    expect(await run('GET', 'absent')).toBeNull()
    expect(await run('MGET', 'absent', 'absent')).toEqual([null, null])
    // The packages round the last few numbers below 2^53. Times in microseconds are far from there.
    expect(await run('INCRBY', 'number', '9007199254740000')).toBe(9007199254740000)
    expect(await run('DECR', 'negative')).toBe(-1)
    expect(await run('EVAL', "return {1, '2', false, {3, {}}, 'ü', true}", '0')).toEqual([
      1,
      '2',
      null,
      [3, []],
      'ü',
      1,
    ])
    await run('HSET', 'hash', 'a', '1', 'b', '2')
    expect(await run('HGETALL', 'hash')).toEqual(['a', '1', 'b', '2'])
    expect(await run('CONFIG', 'GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction'])
    await run('SADD', 'set', 'only')
    expect(await run('SMEMBERS', 'set')).toEqual(['only'])
    await run('ZADD', 'sorted', '1.5', 'member')
    expect(await run('ZSCORE', 'sorted', 'member')).toBe('1.5')
    expect(await run('SCAN', '0', 'MATCH', 'hash')).toEqual([
      expect.any(String),
      expect.arrayContaining(['hash']),
    ])
    expect(await run('TIME')).toEqual([expect.stringMatching(/^\d+$/), expect.stringMatching(/^\d+$/)])
    await server.command('MSET', 'a', '1', 'b', '2')
    expect(await run('MGET', 'a', 'b')).toEqual(['1', '2'])
  })

  test('errors of the server carry their code, and the link stays open', async () => {
    await run('SET', 'text', 'x')
    await expect(run('LPUSH', 'text', 'x')).rejects.toMatchObject({
      name: 'RedisReplyError',
      code: 'WRONGTYPE',
    })
    await expect(run('EVALSHA', '0'.repeat(40), '0')).rejects.toMatchObject({ code: 'NOSCRIPT' })
    await expect(run('NO-SUCH-COMMAND')).rejects.toMatchObject({ code: 'ERR' })
    await expect(run('EVAL', "return redis.error_reply('MINE own words')", '0')).rejects.toMatchObject({
      code: 'MINE',
    })
    await expect(run('EVAL', "redis.call('LPUSH', KEYS[1], 'x')", '1', 'text')).rejects.toMatchObject({
      message: expect.stringContaining('WRONGTYPE'),
    })
    expect(await run('GET', 'text')).toBe('x')
  })

  test('commands of a tick, and of many, arrive in their order', async () => {
    const pushed = []
    for (let tick = 0; tick < 20; tick++) {
      for (let index = 0; index < 50; index++) pushed.push(run('RPUSH', 'list', String(pushed.length)))
      await new Promise(resolve => setImmediate(resolve))
    }
    const lengths = await Promise.all(pushed)
    expect(lengths).toEqual(lengths.map((_, index) => index + 1))
    expect(await run('LRANGE', 'list', '0', '-1')).toEqual(lengths.map((_, index) => String(index)))
  })

  test('messages arrive from the subscription to its end', async () => {
    const { heard } = opened
    await Promise.all([link.subscribe('news'), link.subscribe('news'), link.subscribe('weather')])
    expect(await server.command('PUBSUB', 'NUMSUB', 'news', 'weather')).toEqual(['news', 1, 'weather', 1])
    for (const text of UNUSUAL) await run('PUBLISH', 'news', text)
    await server.command('PUBLISH', 'weather', 'rain')
    await server.command('PUBLISH', 'other', 'nothing')
    await until(() => heard.messages.length === UNUSUAL.length + 1)
    expect(heard.messages).toEqual([...UNUSUAL.map(text => `news: ${text}`), 'weather: rain'])
    await link.unsubscribe('news')
    await link.unsubscribe('never entered')
    expect(await server.command('PUBSUB', 'NUMSUB', 'news', 'weather')).toEqual(['news', 0, 'weather', 1])
    await link.subscribe('news')
    await server.command('PUBLISH', 'news', 'again')
    await until(() => heard.messages.includes('news: again'))
    await Promise.all([link.unsubscribe('news'), link.subscribe('news')])
    await server.command('PUBLISH', 'news', 'at once')
    await until(() => heard.messages.includes('news: at once'))
    expect(heard.resubscriptions).toBe(0)
    await link.unsubscribe('news')
    await link.unsubscribe('weather')
  })

  test('it uses two connections, the second from the first channel on', async () => {
    await using other = await startRedis()
    const count = async (): Promise<number> => {
      const list = String(await other.command('CLIENT', 'LIST'))
      // One of the connections runs this command.
      return list.trim().split('\n').length - 1
    }
    const another = await open(other)
    // An existing client sends none of the box's commands, and stays connected.
    const others = isOwn ? 0 : 1
    await until(async () => (await count()) === others + 1)
    await another.link.subscribe('a')
    await another.link.subscribe('b')
    expect(await count()).toBe(others + 2)
    await another.link.close()
    await until(async () => (await count()) === others)
    await another[Symbol.asyncDispose]()
    await until(async () => (await count()) === 0)
  })
})
