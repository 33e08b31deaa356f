import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'
import { pass } from '../../support/passing.js'

const LIMIT = 20
const WINDOW = 1000

beforeEach(() => {
  const random = new Random(1)
  vi.spyOn(Math, 'random').mockImplementation(() => random.fraction())
})
afterEach(() => void vi.restoreAllMocks())

/** Creates boxes that share one limit, each with a number of callers. */
function scene(callers: readonly number[], limit = LIMIT, roundTrip = 2) {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const count = new NaiveCount()
  const boxes = callers.map(() => new DistantBox(clock, server, roundTrip, { limit, per: WINDOW }))
  for (const [index, box] of boxes.entries()) box.work(callers[index]!, count)
  return { clock, boxes, count }
}

/** Eight boxes with twelve callers each. */
const EIGHT = Array.from({ length: 8 }, () => 12)

/** Returns the number of permits of each box within a number of milliseconds from now on. */
async function partsWithin(duration: number, { clock, boxes }: ReturnType<typeof scene>): Promise<number[]> {
  const before = boxes.map(({ given }) => given.length)
  await pass(clock, duration)
  return boxes.map(({ given }, index) => given.length - before[index]!)
}

/** Returns the longest time without a permit since `since`. */
function longestGap({ grants }: NaiveCount, since: number): number {
  const times = grants.map(({ at }) => at).filter(at => at >= since)
  return Math.max(...times.slice(1).map((time, index) => time - times[index]!))
}

test.each<[string, readonly number[], number]>([
  ['a box with many callers that is stopped costs', [100, 12], 1],
  ['five of eight boxes that are stopped together cost', EIGHT, 5],
])('%s the others no more than one window', async (_, callers, stopped) => {
  const { clock, boxes, count } = scene(callers)
  await pass(clock, 5000)
  const start = clock.now()
  const before = count.total
  for (const box of boxes.slice(0, stopped)) box.freeAt = time => Math.max(time, start + 10_000)
  await pass(clock, 10_000)
  expect(count.total - before).toBeGreaterThanOrEqual(0.98 * 10 * LIMIT - LIMIT)
  expect(longestGap(count, start - WINDOW)).toBeLessThan(1.1 * WINDOW)
  await pass(clock, 10_000)
  expect(count.worst(WINDOW)).toBeLessThanOrEqual(LIMIT)
})

test('eight boxes of which five are stopped half of the time use four fifths of the limit', async () => {
  const { clock, boxes, count } = scene(EIGHT)
  const random = new Random(1)
  for (const box of boxes.slice(0, 5)) {
    const phase = random.below(4000)
    box.freeAt = time => ((time + phase) % 4000 < 2000 ? time + 2000 - ((time + phase) % 4000) : time)
  }
  // At first, each box assumes that it is the only one and reserves accordingly.
  await pass(clock, 10_000)
  const start = clock.now()
  const before = count.total
  await pass(clock, 60_000)
  expect((count.total - before) / (60 * LIMIT)).toBeGreaterThanOrEqual(0.8)
  expect(longestGap(count, start)).toBeLessThan(1.1 * WINDOW)
  expect(count.worst(WINDOW)).toBeLessThanOrEqual(LIMIT)
})

test('eight boxes that all continue have equal parts of the limit, and ask twice for each permit', async () => {
  const all = scene(EIGHT)
  await pass(all.clock, 5000)
  const asked = () => all.boxes.reduce((sum, box) => sum + box.asked, 0)
  const before = asked()
  const parts = await partsWithin(60_000, all)
  expect(Math.max(...parts) / Math.min(...parts)).toBeLessThan(1.25)
  const permits = parts.reduce((sum, part) => sum + part)
  expect(permits).toBeGreaterThanOrEqual(0.98 * 60 * LIMIT)
  expect((asked() - before) / permits).toBeLessThan(2.2)
  expect(all.count.worst(WINDOW)).toBeLessThanOrEqual(LIMIT)
})

test('more boxes than the limit has permits have their turn one after another', async () => {
  const all = scene(
    Array.from({ length: 50 }, () => 3),
    4,
  )
  await pass(all.clock, 15_000)
  const parts = await partsWithin(60_000, all)
  expect(Math.min(...parts)).toBeGreaterThanOrEqual(4)
  expect(Math.max(...parts)).toBeLessThanOrEqual(6)
})
