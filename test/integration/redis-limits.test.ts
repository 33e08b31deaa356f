import { expect, test } from 'vitest'
import { pause, until } from '../contract/time.js'
import { compareLimits } from '../redis/limit-histories.js'
import { RedisPlace } from '../redis/place.js'
import { startRedis } from '../servers/redis.js'

const HISTORIES = 100

test(`the script of limits decides as the original does, over ${HISTORIES} random histories`, async () => {
  await using server = await startRedis()
  await compareLimits(server, 1, HISTORIES)
})

test('a limiter that is idle leaves nothing behind after its window', async () => {
  await using here = await RedisPlace.start()
  const box = await here.box()
  const limiter = box.limiter('api', { limit: 5, per: 300 })
  await limiter.acquire(2)
  await limiter.key('amy').acquire()
  expect(await here.server.command('DBSIZE')).toBe(2)
  await pause(300)
  await until('it is gone', async () => (await here.server.command('DBSIZE')) === 0)
})
