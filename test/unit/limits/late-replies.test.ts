import { expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { pass } from '../../support/passing.js'

/**
 * Creates a box close to its engine. It has measured the latency, and then gets one reply late, by this many
 * milliseconds.
 */
async function lateOnce(options: BoxLimiterOptions, late: number) {
  const clock = new VirtualClock(5000)
  const box = new DistantBox(clock, new Server(clock), 2, options)
  const { limiter } = box
  void limiter.acquire()
  // The permit no longer counts.
  await pass(clock, 6000)
  const delays = [late]
  box.jitter.answer = () => delays.shift() ?? 0
  return { clock, box, limiter }
}

test.each([0, 300])(
  'a block by the first refused decision keeps no permit from others, with a reply %i ms late',
  async late => {
    const { clock, limiter } = await lateOnce({ limit: 5, per: 5000 }, late)
    let passed = 0
    let blocked = 0
    for (let caller = 0; caller < 12; caller++)
      void limiter.decide().then(({ permit }) => {
        if (permit) {
          passed++
          return undefined
        }
        blocked++
        return limiter.pauseUntil(clock.now() + 60_000)
      })
    await pass(clock, late + 50)
    expect({ passed, blocked }).toEqual({ passed: 5, blocked: 7 })
  },
)

test('permits that expire while their first callers keep the process busy are requested again before anybody is refused', async () => {
  const { clock, limiter } = await lateOnce({ limit: 5, per: 5000 }, 0)
  let passed = 0
  let blocked = 0
  for (let caller = 0; caller < 12; caller++)
    void limiter.tryAcquire().then(permit => {
      if (permit) {
        if (++passed < 3) clock.advance(200)
        return undefined
      }
      blocked++
      return limiter.pauseUntil(clock.now() + 60_000)
    })
  await pass(clock, 1000)
  expect({ passed, blocked }).toEqual({ passed: 5, blocked: 7 })
})

test('a try is refused after its second reply, also if permits of both came too late', async () => {
  const { clock, box, limiter } = await lateOnce({ limit: 2, per: 5000 }, 0)
  box.jitter.answer = () => 3000
  const outcomes: unknown[] = []
  for (let caller = 0; caller < 5; caller++) void limiter.tryAcquire().then(permit => outcomes.push(permit))
  await pass(clock, 6100)
  expect(outcomes.filter(permit => permit === undefined).length).toBeGreaterThanOrEqual(3)
})
