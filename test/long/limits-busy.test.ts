import { expect, test } from 'vitest'
import { block } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { place } from '../support/file/places.js'
import { holdFor, Work } from '../support/limits/work.js'

const LIMIT = 20
const PER = 1000

test('a process whose event loop is busy for 40 of 50 ms gets its permits over files within the limit', async () => {
  await using box = await open(place().url)
  const limiter = box.limiter('api', { limit: LIMIT, per: PER })
  await using work = new Work(limiter, LIMIT)
  const busy = setInterval(() => block(40), 50)
  try {
    const first = await work.during(4000)
    const then = await work.during(10 * PER)
    const late = Math.max(first.late, then.late)
    // The hold covers the measured lateness. Once in a while the process is later than ever before.
    expect(then.perWindow).toBeLessThanOrEqual(PER + holdFor(2 * late) + PER / then.windows)
    expect(work.worst(PER, 0)).toBeLessThanOrEqual(LIMIT)
    expect(limiter.outage).toBeUndefined()
  } finally {
    clearInterval(busy)
  }
})
