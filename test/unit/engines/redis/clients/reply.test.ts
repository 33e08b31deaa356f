import { expect, test } from 'vitest'
import { RedisReplyError } from '../../../../../src/engines/redis/clients/connection.js'
import { plainError, plainReply } from '../../../../../src/engines/redis/clients/reply.js'

test('RESP2 replies are unchanged', () => {
  const reply = ['a', 1, null, ['b', [2, 'c']]]
  expect(plainReply(reply)).toEqual(reply)
  for (const single of ['text', '', 0, -5, null]) expect(plainReply(single)).toBe(single)
})

test('RESP3 replies become the same as in RESP2', () => {
  const map = new Map<unknown, unknown>([
    ['a', 1],
    ['b', new Set(['x', 'y'])],
  ])
  expect(plainReply(map)).toEqual(['a', 1, 'b', ['x', 'y']])
  expect(plainReply({ a: '1', b: [true, false] })).toEqual(['a', '1', 'b', [1, 0]])
  expect(plainReply([12n, undefined, Buffer.from('ü')])).toEqual([12, null, 'ü'])
})

test('an error that the server has answered with is distinguished from others', () => {
  for (const message of [
    'ERR unknown command',
    'WRONGTYPE Operation',
    'NOSCRIPT No matching script',
    'OOM x',
    'ERR',
  ]) {
    const error = plainError(new Error(message)) as RedisReplyError
    expect(error).toBeInstanceOf(RedisReplyError)
    expect(error.code).toBe(message.split(' ')[0])
  }
  // A script may return an error of its own.
  const own = Object.assign(new Error('no such train'), { name: 'ReplyError' })
  expect(plainError(own)).toMatchObject({ name: 'RedisReplyError', code: 'ERR', message: 'no such train' })
  for (const message of [
    'Connection is closed.',
    'connect ECONNREFUSED 127.0.0.1:1',
    'Socket closed unexpectedly',
    "Stream isn't writeable and enableOfflineQueue options is false",
    'Reached the max retries per request limit (which is 20).',
    '',
  ]) {
    const error = new Error(message)
    expect(plainError(error)).toBe(error)
  }
})
