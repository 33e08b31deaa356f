import { afterEach, expect, test } from 'vitest'
import { drawFault, possibleKinds } from '../../../apps/chaos/plan.js'
import { systemClock } from '../../../src/base/clock.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { shiftWallClock } from '../../../packages/conformance/src/wall-clock.js'

const HOUR = 3_600_000
const DateBefore = Date

/** Returns the time of day by a clock that is never shifted. Another file of this process may have replaced `Date`. */
const trueNow = (): number => performance.timeOrigin + performance.now()

afterEach(() => shiftWallClock(0))

test.each([HOUR, -HOUR])(
  'the time of day is %d ms off in every way of reading it, and continues',
  async by => {
    shiftWallClock(0)
    const { now } = Date
    shiftWallClock(by)
    const fake = [Date.now(), new Date().getTime(), now(), new (class extends Date {})().getTime()]
    for (const time of fake) expect(Math.abs(time - by - trueNow())).toBeLessThan(HOUR / 10)
    expect(new Date(Date()).getTime()).toBeCloseTo(fake[0]!, -5)
    await pause(5)
    expect(Date.now()).toBeGreaterThan(fake[0]!)
    shiftWallClock(0)
    expect(Math.abs(now() - trueNow())).toBeLessThan(HOUR / 10)
  },
)

test('a given date is unchanged, and so is every other clock', () => {
  const before = systemClock.now()
  shiftWallClock(HOUR)
  expect(new Date(5).getTime()).toBe(5)
  expect([Date.UTC(1970, 0, 2), Date.parse('1970-01-02T00:00Z')]).toEqual([86_400_000, 86_400_000])
  expect(new Date()).toBeInstanceOf(DateBefore)
  expect(systemClock.now() - before).toBeLessThan(HOUR / 10)
})

test('the same jumps come from the same seed: ahead and back, from a second to an hour', () => {
  const kinds = possibleKinds('file:./locks', { network: false, server: false, values: false })
  const plan = () => {
    const random = new Random(7)
    return Array.from({ length: 1000 }, () => drawFault(random, kinds, 4))
  }
  expect(plan()).toEqual(plan())
  const jumps = plan().map(({ jump }) => jump)
  for (const way of [1, -1]) {
    const sizes = jumps.map(jump => way * jump).filter(size => size > 0)
    expect(sizes.length).toBeGreaterThan(400)
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(1000)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(HOUR)
    expect(sizes.filter(size => size > 60_000).length).toBeGreaterThan(100)
  }
})
