import { expect, test } from 'vitest'
import { RedisReplyError } from '../../../../../src/engines/redis/clients/connection.js'
import { plainError } from '../../../../../src/engines/redis/clients/reply.js'

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
