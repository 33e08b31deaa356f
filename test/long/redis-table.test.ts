import { expect, test } from 'vitest'
import { RedisTablePort } from '../support/redis/table-port.js'
import { startRedis } from '../support/servers/redis.js'
import { compareHistories, STEPS } from '../support/table-histories.js'

const OPERATIONS = 100_000

test('the script in Redis decides as the lock table does, over 100,000 random operations', async () => {
  await using server = await startRedis()
  // Other histories than those of the short run.
  await compareHistories(await RedisTablePort.over(server), 1_000_001, OPERATIONS / STEPS)
  expect((await server.calls())['evalsha']).toBeGreaterThanOrEqual(OPERATIONS)
})
