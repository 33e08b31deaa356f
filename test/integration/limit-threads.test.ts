import { expect, test } from 'vitest'
import { mostWithin } from '../support/limits/service.js'
import { shareLimit } from '../support/limits/threads.js'

const LIMIT = 20

/** Returns the maximum number of these times in one period of the wall clock. */
function mostInPeriod(times: readonly number[], length: number): number {
  const counts = new Map<number, number>()
  for (const time of times) {
    const period = Math.floor(time / length)
    counts.set(period, (counts.get(period) ?? 0) + 1)
  }
  return Math.max(...counts.values())
}

test('threads keep limits of all kinds together, while they stand still and give permits back', async () => {
  const { times, wallTimes } = await shareLimit({
    limits: {
      limits: [
        { limit: 6, per: 100 },
        { limit: LIMIT, per: 500, window: 'calendar' },
        { limit: 30, per: 600, window: 'smooth' },
      ],
    },
    threads: 8,
    duration: 1500,
    stalls: 250,
    refunds: true,
  })
  expect(mostWithin(times.flat(), 99.999)).toBeLessThanOrEqual(6)
  expect(mostWithin(times.flat(), 599.999)).toBeLessThanOrEqual(30)
  expect(mostInPeriod(wallTimes.flat(), 500)).toBeLessThanOrEqual(LIMIT)
  expect(times.flat().length).toBeGreaterThan(LIMIT)
})
