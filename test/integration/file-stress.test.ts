import { expect, test } from 'vitest'
import { place } from '../support/file/places.js'
import { stress } from '../support/file/stress.js'

test('four writers that are killed at random lose no update and never wait long', async () => {
  const result = await stress(process.execPath, place().folder, 5000)
  expect(result.integrity).toBe('ok')
  expect(result.counter).toBe(result.sum)
  expect(Math.min(...result.each)).toBeGreaterThan(0)
  expect(result.kills).toBeGreaterThan(5)
  expect(result.longestLockWait).toBeLessThan(100 + result.longestStandstill)
})
