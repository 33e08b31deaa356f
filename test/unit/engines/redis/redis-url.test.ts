import { describe, expect, test } from 'vitest'
import { parseRedisUrl } from '../../../../src/engines/redis/redis-url.js'
import { registeredFor } from '../../../../src/engines/registry.js'

/** Returns the parsed URL, or the reason why it is invalid. */
function outcome(url: string): unknown {
  try {
    return parseRedisUrl(url)
  } catch (error) {
    return (error as Error).message
  }
}

const DEFAULT_USER = { username: undefined, password: undefined, database: 0 }
const DEFAULTS = { prefix: '', minReplicas: 0, layout: 'string' }

describe('the URL of a Redis server', () => {
  test('names host, port, database, user and password', () => {
    expect(parseRedisUrl('redis://ann:s%40c%3Aret:1@[::1]:7000/3')).toEqual({
      name: 'redis://[::1]:7000/3',
      server: { kind: 'server', address: { host: '::1', port: 7000, tls: false } },
      login: { username: 'ann', password: 's@c:ret:1', database: 3 },
      options: DEFAULTS,
    })
  })

  test('leaves out what is usual', () => {
    expect(parseRedisUrl('redis://')).toEqual({
      name: 'redis://',
      server: { kind: 'server', address: { host: 'localhost', port: 6379, tls: false } },
      login: DEFAULT_USER,
      options: DEFAULTS,
    })
    expect(parseRedisUrl('rediss://:secret@db.example/').login).toEqual({
      ...DEFAULT_USER,
      password: 'secret',
    })
    expect(parseRedisUrl('rediss://db.example').server).toEqual({
      kind: 'server',
      address: { host: 'db.example', port: 6379, tls: true },
    })
  })

  test('may have a scheme of Valkey, and means the same', () => {
    for (const rest of ['://ann:a@host:1/3?prefix=x', '://', '://a,b', '://host?x=1']) {
      expect(outcome(`valkey${rest}`)).toEqual(outcome(`redis${rest}`))
      expect(outcome(`valkeys${rest}`)).toEqual(outcome(`rediss${rest}`))
    }
    expect(registeredFor('valkey://host')).toBe(registeredFor('redis://host'))
    expect(registeredFor('valkeys://host')).toBe(registeredFor('redis://host'))
  })

  test('carries options', () => {
    const url = 'redis://host/1?prefix=app%3A&minReplicas=2&layout=redisson'
    expect(parseRedisUrl(url).options).toEqual({ prefix: 'app:', minReplicas: 2, layout: 'redisson' })
  })

  test('names a socket', () => {
    expect(parseRedisUrl('redis+unix:///run/my%20redis.sock?db=2')).toEqual({
      name: 'redis+unix:///run/my%20redis.sock',
      server: { kind: 'server', address: { path: '/run/my redis.sock' } },
      login: { ...DEFAULT_USER, database: 2 },
      options: DEFAULTS,
    })
  })
})

test('the URL of Sentinels names them, the master and its database', () => {
  expect(parseRedisUrl('rediss+sentinel://u:p@a,b:1/the%20master?db=4&prefix=x')).toEqual({
    name: 'rediss+sentinel://a,b:1/the%20master',
    server: {
      kind: 'sentinel',
      sentinels: [
        { host: 'a', port: 26379, tls: true },
        { host: 'b', port: 1, tls: true },
      ],
      masterName: 'the master',
    },
    login: { username: 'u', password: 'p', database: 4 },
    options: { ...DEFAULTS, prefix: 'x' },
  })
})

test('the URL of a cluster names some nodes', () => {
  expect(parseRedisUrl('redis+cluster://a:1,[fe80::1]:2').server).toEqual({
    kind: 'cluster',
    seeds: [
      { host: 'a', port: 1, tls: false },
      { host: 'fe80::1', port: 2, tls: false },
    ],
  })
})

describe('an unfit URL is refused with its reason, and without its password', () => {
  test.each([
    ['redis://a:hunter2@b@c', 'must look like'],
    ['redis+moon://host', 'must look like'],
    ['redis://host:port', 'must have addresses like'],
    ['redis://host:65536', 'must have addresses like'],
    ['redis://u:hunter2@a,b', 'names several servers'],
    ['redis://u:hunter2@host/first', 'must have the number of a database, not "first"'],
    ['redis://u:hunter2@host?db=1', 'must have its database as the path'],
    ['redis://u:hunter2@host?perfix=a', 'unknown option "perfix"'],
    ['redis://u:hunter2@host?minReplicas=-1', 'minReplicas must be a whole number'],
    ['redis://u:hunter2@host?layout=flat', "layout must be 'string' or 'redisson'"],
    ['redis://u:hunter2%@host', 'must be percent-encoded'],
    ['redis+sentinel://u:hunter2@host', "must have the master's name as its path"],
    ['redis+cluster://u:hunter2@host/1', 'no path and no database'],
    ['redis+unix://host/socket', 'must have the path of a socket'],
  ])('%s', (url, reason) => {
    const refused = (): unknown => parseRedisUrl(url)
    expect(refused).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(reason) }),
    )
    expect(refused).not.toThrow('hunter')
  })
})
