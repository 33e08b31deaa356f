import { systemClock } from 'signalbox/engine'
import type { Box, BoxLimiterOptions } from 'signalbox'
import { assert } from './assert.js'
import { testOn, type Boxes } from './boxes.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'
import { pause } from './time.js'

/** Time after which a limit that no box names any more has ended, with room for slow answers, in milliseconds. */
const ENDED = 5500
/** A window that is longer than any check, in milliseconds. */
const HOUR = 3_600_000

/** Takes permits that are available. After a slow answer, the box may need a further call. */
async function take(box: Box, options: BoxLimiterOptions, n = 1): Promise<void> {
  await box.limiter('api', options).acquire(n, { wait: '30s' })
}

/** Asserts that the box gets no permit now. */
async function assertRefused(box: Box, options: BoxLimiterOptions): Promise<void> {
  assert.equal(await box.limiter('api', options).tryAcquire(), undefined)
}

/** Opens a box for each process of a deployment. */
async function fleet(boxes: Boxes): Promise<readonly [Box, Box, Box, Box]> {
  return (await boxes.several(4)) as unknown as readonly [Box, Box, Box, Box]
}

/** Limits of one name that differ between boxes or change. `docs/limits.md` has the rule. */
export function definitions(fixture: EngineFixture): void {
  const test = testOn(fixture)
  describe('definitions of one limiter', () => {
    test('a box that raises its limit alone does not wait', async boxes => {
      const box = await boxes.open()
      const limiter = box.limiter('api', { limit: 1, per: HOUR })
      await limiter.acquire()
      limiter.setLimit(10, HOUR)
      const asked = systemClock.now()
      await limiter.acquire(2, { wait: '30s' })
      assert.below(systemClock.now() - asked, 2000)
      limiter.setLimit(1, HOUR)
      assert.equal(await limiter.tryAcquire(), undefined)
    })

    test('a raised limit is not refused while another box may still raise it', async boxes => {
      const [one, other] = await boxes.pair()
      const limiters = [one, other].map(box => box.limiter('api', { limit: 1, per: HOUR }))
      await limiters[0]!.acquire()
      await limiters[1]!.tryAcquire()
      limiters[0]!.setLimit(10)
      const waiting = limiters[0]!.acquire(1, { wait: '30s' })
      await pause(300)
      limiters[1]!.setLimit(10)
      await limiters[1]!.acquire()
      await waiting
    })

    test('a pause can be ended when nothing else of its limiter is known any more', async boxes => {
      const box = await boxes.open()
      const limiter = box.limiter('api', { limit: 5, per: 300 })
      await limiter.pauseUntil(Date.now() + HOUR)
      await pause(ENDED)
      assert.equal(await box.resumeLimiter('api'), 1)
      await limiter.acquire(1, { wait: '30s' })
    })

    test('a limit keeps counting while no box names it, and counts what others take', async boxes => {
      const [strict, lax] = await boxes.pair()
      const both = {
        limits: [
          { limit: 20, per: '1s' },
          { limit: 8, per: HOUR },
        ],
      } as const
      const short = { limit: 20, per: '1s' } as const
      for (let turn = 0; turn < 4; turn++) await take(strict, both)
      // The strict limit is in force for every box.
      for (let turn = 0; turn < 4; turn++) await take(lax, short)
      await assertRefused(lax, short)
      await pause(ENDED)
      await take(lax, short)
      await assertRefused(strict, both)
      // It is in force again.
      await assertRefused(lax, short)
    })

    test('a rolling deployment to a greater limit: the old one holds until the last old box has gone', async boxes => {
      const [old, lastOld, next, lastNext] = await fleet(boxes)
      const before = { limit: 2, per: HOUR }
      const after = { limit: 6, per: HOUR }
      await take(old, before)
      await take(lastOld, before)
      await old.close()
      await assertRefused(next, after)
      await assertRefused(lastOld, before)
      await lastOld.close()
      await assertRefused(lastNext, after)
      const closed = systemClock.now()
      await take(next, after, 2)
      assert.below(systemClock.now() - closed, 9000)
      await take(lastNext, after, 2)
      await assertRefused(lastNext, after)
    })

    test('a rolling deployment to a smaller limit: the new one holds for the old boxes from the first call on', async boxes => {
      const [old, lastOld, next, lastNext] = await fleet(boxes)
      const before = { limit: 6, per: HOUR }
      const after = { limit: 3, per: HOUR }
      await take(old, before)
      await take(lastOld, before)
      await old.close()
      await take(next, after)
      await assertRefused(lastOld, before)
      await lastOld.close()
      await assertRefused(lastNext, after)
      // Back to the old limit: the permits already given count.
      await next.close()
      await lastNext.close()
      const again = await boxes.open()
      await take(again, before, 3)
      await assertRefused(again, before)
    })
  })
}
