import { afterEach, expect, test, vi } from 'vitest'
import { LostError, TimedOutError } from '../../../src/index.js'
import { openTestBox, type TestBox } from '../../../src/testing/index.js'

const boxes: TestBox[] = []

async function open(): Promise<TestBox> {
  const box = await openTestBox()
  boxes.push(box)
  return box
}

afterEach(async () => {
  for (const box of boxes.splice(0)) await box.close()
  vi.useRealTimers()
})

/** Ways to advance the time of a box, with their preparation. */
const ways: Readonly<Record<string, { begin(): void; advance(box: TestBox, ms: number): Promise<void> }>> = {
  'its own clock': { begin: () => undefined, advance: (box, ms) => box.advance(ms) },
  'fake timers, by advance': {
    begin: () => void vi.useFakeTimers(),
    advance: (box, ms) => box.advance(ms),
  },
  'fake timers, asynchronously': {
    begin: () => void vi.useFakeTimers(),
    advance: async (_, ms) => void (await vi.advanceTimersByTimeAsync(ms)),
  },
  'fake timers, synchronously': {
    begin: () => void vi.useFakeTimers(),
    async advance(_, ms) {
      await Promise.resolve()
      vi.advanceTimersByTime(ms)
      await Promise.resolve()
    },
  },
  'fake timers that also replace microtasks, as those of Jest do': {
    begin: () =>
      void vi.useFakeTimers({
        toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'queueMicrotask', 'Date', 'hrtime'],
      }),
    advance: (box, ms) => box.advance(ms),
  },
}

for (const [way, { begin, advance }] of Object.entries(ways)) {
  test(`by ${way}: a wait ends`, async () => {
    begin()
    const box = await open()
    const other = await box.another()
    await box.mutex('key').acquire()
    const waiting = expect(other.mutex('key').acquire({ wait: '30s' })).rejects.toThrow(TimedOutError)
    const settled = vi.fn()
    void waiting.then(settled)
    await advance(box, 29_999)
    await new Promise<void>(resolve => queueAll(resolve))
    expect(settled).not.toHaveBeenCalled()
    await advance(box, 1)
    await waiting
    await other.close()
  })

  test(`by ${way}: a grant is renewed, and one that is not renewed expires`, async () => {
    begin()
    const box = await open()
    const renewed = await box.mutex('renewed').acquire({ lease: '10s' })
    const kept = await box.mutex('kept').acquire({ lease: '10s', renew: false })
    const onLost = vi.fn()
    kept.signal.addEventListener('abort', onLost)
    await advance(box, 9999)
    expect(onLost).not.toHaveBeenCalled()
    kept.assertHeld()
    await advance(box, 1)
    expect(onLost).toHaveBeenCalledOnce()
    expect(() => kept.assertHeld()).toThrow(LostError)
    await advance(box, 3_600_000)
    renewed.assertHeld()
  })

  test(`by ${way}: a limiter refills`, async () => {
    begin()
    const box = await open()
    const limiter = box.limiter('api', { limit: 2, per: '1m' })
    await limiter.acquire(2)
    await advance(box, 59_999)
    expect(await limiter.tryAcquire()).toBeUndefined()
    // A permit counts from the end of the time for which it could be used.
    await advance(box, 1001)
    expect(await limiter.tryAcquire()).toBeDefined()
  })

  test(`by ${way}: concurrent transactions commit`, async () => {
    begin()
    const box = await open()
    const store = box.store('accounts', { group: { maxSize: 8, maxTime: '1s' } })
    const writes = Array.from({ length: 3 }, () =>
      store.transaction(['anna'], transaction => {
        transaction.put('anna', (transaction.get<number>('anna') ?? 0) + 1)
      }),
    )
    await advance(box, 0)
    await Promise.all(writes)
    expect((await store.get('anna'))?.value).toBe(3)
  })
}

/** Calls the task when no microtask is left. */
function queueAll(task: () => void): void {
  let left = 20
  const next = (): void => void Promise.resolve().then(() => (--left > 0 ? next() : task()))
  next()
}

test('a schedule runs at the times to which a test advances', async () => {
  const box = await open()
  const slots: Date[] = []
  const schedule = box.schedule('nightly', { cron: '0 3 * * *' }, (_, { at }) => void slots.push(at))
  const { at } = schedule.next!
  await box.advance('2d')
  expect(slots).toEqual([at, new Date(at.getTime() + 86_400_000)])
})
