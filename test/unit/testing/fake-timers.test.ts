import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TimedOutError } from '../../../src/index.js'
import { openTestBox } from '../../../src/testing/index.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const runAll: Readonly<Record<string, () => unknown>> = {
  runAllTimers: () => vi.runAllTimers(),
  runAllTimersAsync: () => vi.runAllTimersAsync(),
}

for (const [name, run] of Object.entries(runAll)) {
  test(`${name} ends while a grant is held, which stays held however far they advance then`, async () => {
    await using box = await openTestBox()
    const grant = await box.mutex('key').acquire()
    const done = vi.fn()
    setTimeout(done, 45_000)
    await run()
    expect(done).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(3_600_000)
    grant.assertHeld()
    await run()
    vi.advanceTimersByTime(3_600_000)
    grant.assertHeld()
  })

  test(`${name} ends while a caller waits without a limit, which gets the lock then`, async () => {
    await using box = await openTestBox()
    await using other = await box.another()
    const grant = await box.mutex('key').acquire()
    const waiting = other.mutex('key').acquire()
    await run()
    vi.advanceTimersByTime(60_000)
    await grant.release()
    await (await waiting).release()
  })

  test(`${name} ends a wait`, async () => {
    await using box = await openTestBox()
    await using other = await box.another()
    await box.mutex('key').acquire()
    const waiting = expect(other.mutex('key').acquire({ wait: '1h' })).rejects.toThrow(TimedOutError)
    await run()
    await waiting
  })

  test(`${name} ends after all timers were cleared`, async () => {
    await using box = await openTestBox()
    await box.mutex('key').acquire()
    vi.advanceTimersByTime(15_000)
    vi.clearAllTimers()
    await using other = await box.another()
    await other.mutex('other').acquire()
    await run()
  })
}

test('the time of a box never decreases and does not leap when fake timers come and go', async () => {
  vi.useRealTimers()
  await using box = await openTestBox()
  const grant = await box.mutex('key').acquire({ lease: '10s', renew: false })
  await box.advance('1s')
  vi.useFakeTimers()
  expect(grant.expiresIn()).toBe(9000)
  vi.advanceTimersByTime(2000)
  expect(grant.expiresIn()).toBe(7000)
  vi.clearAllTimers()
  expect(grant.expiresIn()).toBe(7000)
  vi.useRealTimers()
  await box.advance('3s')
  expect(grant.expiresIn()).toBe(4000)
  vi.useFakeTimers()
  expect(grant.expiresIn()).toBe(4000)
})

test('timers that were set before the fake timers come due under them, and the other way round', async () => {
  vi.useRealTimers()
  await using box = await openTestBox()
  const first = await box.mutex('first').acquire({ lease: '10s', renew: false })
  const onLost = vi.fn()
  first.signal.addEventListener('abort', onLost)
  vi.useFakeTimers()
  await box.advance('10s')
  expect(onLost).toHaveBeenCalledOnce()
  const second = await box.mutex('second').acquire({ lease: '10s', renew: false })
  second.signal.addEventListener('abort', onLost)
  vi.useRealTimers()
  await box.advance('10s')
  expect(onLost).toHaveBeenCalledTimes(2)
})

test('a calendar follows the system time that a test sets', async () => {
  vi.setSystemTime('2026-11-27T12:00:00Z')
  await using box = await openTestBox()
  const limiter = box.limiter('daily', { limit: 1, per: '1d', window: 'calendar' })
  expect(await limiter.tryAcquire()).toBeDefined()
  vi.setSystemTime('2026-11-27T23:00:00Z')
  expect(await limiter.tryAcquire()).toBeUndefined()
  vi.setSystemTime('2026-11-28T00:00:00Z')
  expect(await limiter.tryAcquire()).toBeDefined()
  const slots: string[] = []
  const nightly = (): Promise<unknown> =>
    box.oncePer('nightly', { cron: '0 0 * * *' }, (_, { name }) => void slots.push(name))
  await nightly()
  await nightly()
  vi.setSystemTime('2026-11-29T08:00:00Z')
  await nightly()
  expect(slots).toHaveLength(2)
})

test('a wait that is longer than the longest timer ends in time', async () => {
  await using box = await openTestBox()
  await box.mutex('key').acquire({ lease: '1d' })
  const settled = vi.fn()
  const waiting = expect(box.mutex('key').acquire({ wait: '30d' })).rejects.toThrow(TimedOutError)
  void waiting.then(settled)
  await box.advance('29d')
  expect(settled).not.toHaveBeenCalled()
  await box.advance('1d')
  await waiting
})

test('a closed box has no timer', async () => {
  const box = await openTestBox()
  const other = await box.another()
  await box.mutex('key').acquire()
  void other
    .mutex('key')
    .acquire({ wait: '30s' })
    .catch(() => undefined)
  const limiter = box.limiter('api', { limit: 1, per: '1m' })
  await limiter.acquire()
  void limiter.acquire().catch(() => undefined)
  const watching = box.store('values').watch('key')
  await watching.next()
  expect(vi.getTimerCount()).toBeGreaterThan(0)
  await box.close()
  await other.close()
  expect(vi.getTimerCount()).toBe(0)
})

test('without fake timers, a box sets no timer of the runtime', async () => {
  vi.useRealTimers()
  const set = vi.spyOn(globalThis, 'setTimeout')
  await using box = await openTestBox()
  await using other = await box.another()
  await box.mutex('key').acquire()
  const waiting = expect(other.mutex('key').acquire({ wait: '30s' })).rejects.toThrow(TimedOutError)
  await box.advance('1m')
  await waiting
  expect(set).not.toHaveBeenCalled()
})
