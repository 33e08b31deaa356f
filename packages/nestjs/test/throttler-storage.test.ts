import { open, type Box } from 'signalbox'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SignalboxThrottlerStorage } from '../src/throttler-storage.js'

const MINUTE = 60_000
/** Time until a permit expires, in seconds. The storage reserves it for up to a second longer than its window. */
const LATEST = 61

let box: Box
let storage: SignalboxThrottlerStorage

beforeEach(async () => {
  box = await open('memory:')
  storage = new SignalboxThrottlerStorage(box)
})

afterEach(() => box.close())

test('of 1,000 requests at once, the limit passes', async () => {
  const ask = (): Promise<unknown> => storage.increment('anna', MINUTE, 5, MINUTE, 'default')
  const records = await Promise.all(Array.from({ length: 1000 }, ask))
  // All five results show the permits in use after the five, because one step of the engine gave them.
  const passed = { totalHits: 5, timeToExpire: LATEST, isBlocked: false, timeToBlockExpire: 0 }
  expect(records.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => passed))
  const blocked = expect.objectContaining({ totalHits: 6, isBlocked: true }) as unknown
  expect(records.slice(5)).toEqual(Array.from({ length: 995 }, () => blocked))
})

test('a block lasts as long as asked for, is set once, and later requests do not prolong it', async () => {
  const ask = (): Promise<{ readonly timeToBlockExpire: number }> =>
    storage.increment('anna', MINUTE, 1, 10 * MINUTE, 'default')
  await ask()
  expect((await ask()).timeToBlockExpire).toBe(600)
  const { timeToBlockExpire } = await ask()
  expect(timeToBlockExpire).toBeLessThanOrEqual(600)
  expect(timeToBlockExpire).toBeGreaterThan(500)
})

test('a block without an end lasts a year', async () => {
  const ask = (): Promise<unknown> => storage.increment('anna', MINUTE, 1, Infinity, 'default')
  await ask()
  expect(await ask()).toMatchObject({ isBlocked: true, timeToBlockExpire: 365 * 86_400 })
  expect(await ask()).toMatchObject({ isBlocked: true })
})

test('without a block, a request waits only until the limit admits it', async () => {
  const ask = (): Promise<unknown> => storage.increment('anna', MINUTE, 1, 0, 'default')
  await ask()
  expect(await ask()).toMatchObject({ isBlocked: true, timeToBlockExpire: LATEST })
  const all: string[] = []
  for await (const { pausedFor } of box.limiters()) all.push(String(pausedFor))
  expect(all).toEqual(['0'])
})

test('keys, throttlers and limits count separately; a key can be any text', async () => {
  const keys = ['anna', 'ben', '', 'a\0b', '\ud800', 'x'.repeat(5000)]
  for (const key of keys) {
    for (const throttler of ['short', 'long']) {
      for (const limit of [1, 2]) {
        const { totalHits } = await storage.increment(key, MINUTE, limit, MINUTE, throttler)
        expect([key, throttler, limit, totalHits]).toEqual([key, throttler, limit, 1])
      }
    }
  }
})

test('a limit below one passes nothing, and an infinite one everything', async () => {
  expect(await storage.increment('anna', MINUTE, 0, 0, 'default')).toEqual({
    totalHits: 1,
    timeToExpire: 60,
    isBlocked: true,
    timeToBlockExpire: 60,
  })
  expect(await storage.increment('anna', MINUTE, Infinity, MINUTE, 'default')).toMatchObject({
    isBlocked: false,
  })
  expect((await storage.increment('anna', MINUTE, 1.5, 0, 'default')).isBlocked).toBe(false)
  expect((await storage.increment('anna', MINUTE, 1.5, 0, 'default')).isBlocked).toBe(true)
})

test('a closed box rejects, and an invalid window is refused', async () => {
  for (const ttl of [0, NaN, Infinity, '60000' as unknown as number])
    await expect(storage.increment('anna', ttl, 5, 0, 'default')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^ttl must be milliseconds.*, not /) as string,
    })
  await box.close()
  await expect(storage.increment('anna', MINUTE, 5, 0, 'default')).rejects.toMatchObject({ code: 'CLOSED' })
})

test('more limits than are kept still count', async () => {
  const limits = Array.from({ length: 1100 }, (_, index) => index + 1)
  for (const limit of limits) await storage.increment('anna', MINUTE, limit, 0, 'default')
  for (const limit of [1, 2, 1100]) {
    const { totalHits } = await storage.increment('anna', MINUTE, limit, 0, 'default')
    expect([limit, totalHits]).toEqual([limit, 2])
  }
})
