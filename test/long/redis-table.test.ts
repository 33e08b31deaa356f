import { expect, test } from 'vitest'
import { compareHistories, STEPS } from '../support/redis/table-histories.js'
import { startRedis } from '../support/servers/redis.js'

const OPERATIONS = 100_000

test('the script in Redis decides as the lock table does, over 100,000 random operations', async () => {
  await using server = await startRedis()
  // Other histories than those of the short run.
  await compareHistories(server, 1_000_001, OPERATIONS / STEPS)
  expect((await server.calls())['evalsha']).toBeGreaterThanOrEqual(OPERATIONS)
})
