import { describe, expect, test, vi } from 'vitest'
import { VirtualClock } from '../../src/base/clock.js'
import { Box } from '../../src/box.js'
import type { PermitReservation } from '../../src/engine/contract.js'
import { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import { BoxLimiters } from '../../src/limits/remote/box-limiter.js'
import { limiter } from '../../src/limits/index.js'
import { reservePermits, type LimiterState } from '../../src/engine/limits/reserve-permits.js'
import type { ReservePermits } from '../../src/engine/limits/reservation.js'
import { memoryInUse } from '../support/heap.js'
import { pass, settled } from '../support/passing.js'

/** Returns the bytes in use after a garbage collection. */
async function inUse(): Promise<number> {
  const { heapUsed, arrayBuffers } = await memoryInUse()
  return heapUsed + arrayBuffers
}

const MANY = 100_000

/** Returns the bytes that each of many values takes. */
async function bytesEach(make: () => unknown): Promise<number> {
  const kept = new Array<unknown>(MANY).fill(undefined)
  const before = await inUse()
  for (let index = 0; index < MANY; index++) kept[index] = make()
  const bytes = ((await inUse()) - before) / MANY
  expect(kept).toHaveLength(MANY)
  return bytes
}

describe('waiting callers', () => {
  test('take one timer, and 200 bytes each besides their promises', async () => {
    const clock = new VirtualClock()
    const after = vi.spyOn(clock, 'after')
    const limit = limiter({ limit: 1, per: '1h', clock })
    limit.tryAcquire()
    const promise = await bytesEach(() => new Promise(() => undefined))
    const waiting = await bytesEach(() => limit.acquire())
    expect(waiting - promise).toBeLessThanOrEqual(200)
    expect(after).toHaveBeenCalledTimes(1)
    expect(limit.explain().place).toBe(MANY)
  }, 60_000)

  test('take no more where an engine counts', async () => {
    const clock = new VirtualClock()
    const after = vi.spyOn(clock, 'after')
    let state: LimiterState | undefined
    const ask = (request: ReservePermits): PermitReservation => {
      const now = clock.now()
      const decision = reservePermits(state, request, now, now)
      state = decision.state
      return { reserved: decision.reserved, earliest: now, latest: now }
    }
    const options = { limit: 1, per: '1h' } as const
    const lock = (): never => {
      throw new Error('it has no concurrency')
    }
    const limit = new BoxLimiters({ clock, engine: 'test:', session: 'one', ask, lock }).limiter(
      'api',
      options,
    )
    await limit.acquire()
    const before = after.mock.calls.length
    const promise = await bytesEach(() => new Promise(() => undefined))
    const waiting = await bytesEach(() => limit.acquire())
    expect(waiting - promise).toBeLessThanOrEqual(200)
    expect(after.mock.calls.length - before).toBeLessThanOrEqual(1)
    expect((await limit.explain()).place).toBe(MANY)
  }, 60_000)

  test('leave nothing behind after any end of their wait', async () => {
    const clock = new VirtualClock()
    const limit = limiter({ limit: 1000, per: '1s', clock })
    const before = await inUse()
    for (let round = 0; round < 10; round++) {
      const controller = new AbortController()
      const all = [1, 2, 3, 4].flatMap(kind =>
        Array.from({ length: 1000 }, () =>
          limit
            .acquire(1, {
              signal: kind === 1 ? controller.signal : kind === 2 ? new AbortController().signal : undefined,
              wait: kind === 3 ? 9000 : Infinity,
              priority: kind,
            })
            .catch(() => undefined),
        ),
      )
      await settled()
      controller.abort()
      await pass(clock, 10_000)
      await Promise.all(all)
    }
    expect(limit.explain().place).toBe(0)
    expect((await inUse()) - before).toBeLessThan(2e6)
  }, 60_000)
})

describe('keys', () => {
  test('that are unused are forgotten after their window without a further call', async () => {
    const clock = new VirtualClock()
    const limit = limiter({ limit: 3, per: '1s', clock })
    const kept = limit.key('kept')
    const before = await inUse()
    for (let index = 0; index < MANY; index++) limit.key(`key ${index}`).tryAcquire()
    expect((await inUse()) - before).toBeGreaterThan(MANY * 50)
    await pass(clock, 3000)
    expect((await inUse()) - before).toBeLessThan(2e6)
    expect(clock.nextAt()).toBeUndefined()
    // A program can keep the limiter of a key in the meantime.
    expect(kept.tryAcquire(3)).toBeDefined()
    expect(kept.tryAcquire()).toBeUndefined()
  }, 60_000)

  test('in use are kept: with given permits, waiting callers, a pause or a current day', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 9, 24, 22, 30))
    const days = limiter({
      limits: [
        { limit: 2, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin' },
        { limit: 10, per: '1s' },
      ],
      concurrency: 2,
      clock,
    })
    days.key('counted').tryAcquire(2)!.release()
    const held = days.key('held').tryAcquire()!
    days.key('paused').pauseUntil(clock.now() + 200 * 3_600_000)
    // On a day of 25 hours, 24 hours do not end the period.
    await pass(clock, 24 * 3_600_000)
    expect(days.key('counted').tryAcquire()).toBeUndefined()
    await pass(clock, 48 * 3_600_000)
    expect(days.key('held').tryAcquire()).toBeDefined()
    expect(days.key('held').tryAcquire()).toBeUndefined()
    held.release()
    expect(days.key('held').tryAcquire()).toBeDefined()
    expect(days.key('paused').tryAcquire()).toBeUndefined()
    expect(days.key('counted').tryAcquire()).toBeDefined()
  })
})

test('an engine in memory forgets unused limiters without a further call', async () => {
  const clock = new VirtualClock()
  const engine = new MemoryEngine('memory:', new MemorySpace(clock), clock)
  const box = await Box.join(engine, clock)
  const before = await inUse()
  const names = box.limiter('long', { limit: 3, per: '1m' })
  expect(await names.tryAcquire()).toBeDefined()
  const many = box.limiter('many', { limit: 3, per: '1s' })
  for (let index = 0; index < 10_000; index++) await many.key(`key ${index}`).tryAcquire()
  expect((await inUse()) - before).toBeGreaterThan(10_000 * 200)
  // The box itself forgets unused limiters in ten seconds.
  await pass(clock, 25_000)
  expect((await inUse()) - before).toBeLessThan(1e6)
  expect(await names.tryAcquire(3)).toBeUndefined()
  await pass(clock, 100_000)
  expect(clock.nextAt()).toBeUndefined()
  await box.close()
}, 60_000)

test('a limiter without waiters keeps no process alive', () => {
  const limit = limiter({ limit: 1, per: '1s' })
  const handles = process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  limit.tryAcquire()
  limit.key('a').tryAcquire()
  expect(process.getActiveResourcesInfo().filter(name => name === 'Timeout')).toHaveLength(handles)
})
