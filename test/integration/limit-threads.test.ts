import { expect, test } from 'vitest'
import { mostWithin } from '../limits/service.js'
import { shareLimit } from '../limits/threads.js'

const LIMIT = 20
const PER = 400
/** Rounding aside. */
const EXACT = PER - 0.001

test('threads keep the bound, one of them standing still again and again, and wait without spinning', async () => {
  const options = { limit: LIMIT, per: PER, threads: 12, duration: 2500, stalls: 450 }
  const { times, busy } = await shareLimit(options)
  expect(mostWithin(times.flat(), EXACT)).toBeLessThanOrEqual(LIMIT)
  expect(Math.min(...times.map(own => own.length))).toBeGreaterThan(0)
  // One that spins takes a whole one by itself.
  expect(busy).toBeLessThan(0.8)
})

test('threads keep the bound while they give back what others could have taken', async () => {
  const { times } = await shareLimit({
    limit: LIMIT,
    per: PER,
    threads: 8,
    duration: 2500,
    refunds: true,
  })
  expect(mostWithin(times.flat(), EXACT)).toBeLessThanOrEqual(LIMIT)
  expect(times.flat().length).toBeGreaterThan(LIMIT)
})
