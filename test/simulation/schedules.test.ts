import { expect, test } from 'vitest'
import { runSeeds } from './seeds.js'

const TIME_LIMIT = 600_000

test('300 schedules break no promise', { timeout: TIME_LIMIT }, async () => {
  expect(await runSeeds(1, 301)).toEqual([])
})
