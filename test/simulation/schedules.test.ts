import { expect, test } from 'vitest'
import { runSeeds } from './seeds.js'

const TIME_LIMIT = 600_000

test('150 schedules break no promise', { timeout: TIME_LIMIT }, async () => {
  expect(await runSeeds(1, 151)).toEqual([])
})
