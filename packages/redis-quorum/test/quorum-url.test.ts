import { describe, expect, test } from 'vitest'
import { InvalidArgumentError } from 'signalbox'
import { openRedisQuorum } from '../src/open.js'
import { parseQuorumUrl } from '../src/quorum-url.js'

describe('URLs of a quorum', () => {
  test('each server has the user, the password, the database and the query of the whole', () => {
    expect(parseQuorumUrl('rediss-quorum://me:p%40ss@a:1,[::1]:2,c/3?prefix=x:')).toEqual({
      name: 'rediss-quorum://a:1,[::1]:2,c/3',
      servers: [
        'rediss://me:p%40ss@a:1/3?prefix=x:',
        'rediss://me:p%40ss@[::1]:2/3?prefix=x:',
        'rediss://me:p%40ss@c/3?prefix=x:',
      ],
    })
  })

  test.each([
    ['redis-quorum://a,b', 'at least 3'],
    ['redis-quorum://a,b,a', 'different'],
    ['redis-quorum://a,b,c?layout=redisson', 'layout'],
    ['redis-quorum://a,b,c?retries=3', 'retries'],
    ['redis-quorum:a,b,c', 'must have // after the scheme'],
    ['redis-quorum://a,b,c?prefix=app:\n', 'white space'],
    ['redis-quorum://a,b,c,', 'between commas'],
    ['redis-quorum://a,b,,c', 'between commas'],
  ])('%s is refused', async (url, reason) => {
    const error: unknown = await openRedisQuorum(url).catch((refusal: unknown) => refusal)
    expect(error).toBeInstanceOf(InvalidArgumentError)
    expect((error as Error).message).toContain(reason)
  })

  test('a password is in no message', async () => {
    for (const url of [
      'redis-quorum:me:secret@a,b,c',
      'redis-quorum://me:secret@a,b',
      'redis-quorum://me:123/secret@a,b,c',
      'redis-quorum://me:123?secret@a,b,c/0',
    ]) {
      const error: unknown = await openRedisQuorum(url).catch((refusal: unknown) => refusal)
      expect(String(error)).not.toContain('secret')
    }
  })
})
