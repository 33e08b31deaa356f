import { expect, test } from 'vitest'
import { runSeeds } from './seeds.js'

const TIME_LIMIT = 600_000

test('500 schedules break no promise', { timeout: TIME_LIMIT }, async () => {
  expect(await runSeeds(501, 1001)).toEqual([])
})
