import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { pause } from '../../src/conformance/time.js'
import { sharedLimiter } from '../../src/limits/index.js'
import { builtProgram } from '../file/built-program.js'
import { mostWithin } from '../limits/service.js'

const THREADS = 50
const LIMIT = 20
const PER = 500
/** Covers that a thread can lose its processor between a permit and the note of it. */
const JITTER = 500

test('fifty worker threads keep the bound, and all have their turn', async () => {
  const { handle } = sharedLimiter({ limit: LIMIT, per: PER, jitter: JITTER })
  const threads = Array.from(
    { length: THREADS },
    () => new Worker(builtProgram('test/limits/sharer.process.js'), { workerData: handle }),
  )
  try {
    await Promise.all(threads.map(thread => once(thread, 'message')))
    const from = systemClock.now()
    await pause(15_000)
    const notes = threads.map(async thread => {
      const note = once(thread, 'message')
      thread.postMessage('enough')
      const [times] = (await note) as [number[]]
      return times
    })
    const all = await Promise.all(notes)
    expect(mostWithin(all.flat(), PER)).toBeLessThanOrEqual(LIMIT)
    const counts = all.map(times => times.filter(time => time > from).length)
    expect(Math.min(...counts)).toBeGreaterThan(0)
    // In order of arrival nobody has much more than others.
    const average = counts.reduce((sum, count) => sum + count, 0) / THREADS
    expect(Math.max(...counts)).toBeLessThanOrEqual(2 * average)
  } finally {
    await Promise.all(threads.map(thread => thread.terminate()))
  }
})
