import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { block, pause } from '../../src/conformance/time.js'
import { open } from '../../src/index.js'
import { place } from '../file/places.js'
import { mostWithin } from '../limits/service.js'

const LIMIT = 20
const PER = 1000

test('a process whose event loop is busy for 40 of 50 ms gets its permits over files, and no window has more', async () => {
  await using box = await open(place().url)
  const limiter = box.limiter('api', { limit: LIMIT, per: PER })
  const times: number[] = []
  const ended = new AbortController()
  const call = async (): Promise<void> => {
    for (;;) {
      await limiter.acquire(1, { signal: ended.signal })
      times.push(systemClock.now())
    }
  }
  const busy = setInterval(() => block(40), 50)
  const callers = Promise.allSettled(Array.from({ length: 3 * LIMIT }, call))
  try {
    await pause(4000)
    const before = times.length
    const start = systemClock.now()
    await pause(10 * PER)
    // It pays for how late its event loop is, as others pay for the way.
    const windows = (systemClock.now() - start) / PER
    expect((times.length - before) / windows).toBeGreaterThanOrEqual(0.8 * LIMIT)
    expect(mostWithin(times, PER)).toBeLessThanOrEqual(LIMIT)
    expect(limiter.outage).toBeUndefined()
  } finally {
    clearInterval(busy)
    ended.abort()
    await callers
  }
})
