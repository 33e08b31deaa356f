import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.js'
import { ClosedError, InvalidArgumentError } from '../../../src/errors.js'
import { joinLimiter, sharedLimiter, type SharedLimiterOptions } from '../../../src/limits/index.js'
import { SharedRing } from '../../../src/limits/shared-ring.js'
import { ThreadTurns, TURNS_BYTES } from '../../../src/limits/thread-turns.js'
import { Waiter } from '../../../src/limits/waiting-line.js'

const waiter = (n: number, arrival: number): Waiter => new Waiter(n, arrival, () => undefined)

describe('a ring in shared memory', () => {
  test('a grant that was claimed and not written has no time; what is written is not before its time', () => {
    const origin = systemClock.now() - 1000
    const ring = new SharedRing(SharedRing.memory(4, origin))
    expect(ring.timeOf((ring.head - 4) | 0)).toBe(origin)
    expect(ring.claim(0, 2)).toBe(true)
    expect(ring.claim(0, 1)).toBe(false)
    expect(ring.timeOf(0)).toBeUndefined()
    const now = systemClock.now()
    expect(ring.stamp(0, 2, now)).toBe(true)
    expect(ring.timeOf(1)).toBeGreaterThanOrEqual(now)
    expect(ring.timeOf(1)! - now).toBeLessThan(0.001)
  })

  test('what somebody else has written in the meantime is nobody’s grant', () => {
    const ring = new SharedRing(SharedRing.memory(4, systemClock.now() - 1000))
    ring.claim(0, 1)
    expect(ring.write(0, systemClock.now())).toBe(true)
    expect(ring.stamp(0, 1, systemClock.now())).toBe(false)
  })

  test('laps and numbers go round', () => {
    const origin = systemClock.now() - 1000
    const ring = new SharedRing(SharedRing.memory(2, origin))
    for (let grant = 0; grant < 1000; grant++) {
      expect(ring.claim(grant, 1)).toBe(true)
      expect(ring.timeOf(grant)).toBeUndefined()
      expect(ring.stamp(grant, 1, origin + grant)).toBe(true)
      expect(ring.timeOf(grant)).toBeCloseTo(origin + grant, 3)
    }
  })
})

describe('threads in line', () => {
  test('count those before them, and pass over who is not seen any more', () => {
    let now = 1000
    const memory = new SharedArrayBuffer(TURNS_BYTES)
    const [a, b] = [new ThreadTurns(memory, () => now), new ThreadTurns(memory, () => now)]
    const [first, second] = [waiter(2, a.arrive()), waiter(3, b.arrive())]
    a.stand(first, false)
    b.stand(second, false)
    expect(b.before(second.arrival)).toBe(2)
    expect(a.before(first.arrival)).toBe(0)
    expect(a.before(0)).toBe(3)
    expect(b.passOver(second.arrival, 150)).toBe(false)
    now += 1000
    expect(a.passOver(first.arrival, 150)).toBe(false)
    expect(b.passOver(second.arrival, 150)).toBe(true)
    expect(b.before(second.arrival)).toBe(0)
    // It comes after all.
    a.stand(first, false)
    expect(b.before(second.arrival)).toBe(2)
    a.stand(undefined, false)
    b.stand(undefined, false)
    expect(a.before(0)).toBe(0)
  })
})

describe('a limiter that is shared', () => {
  test('counts what others took, keeps call order, and gives back what was not used', async () => {
    const one = sharedLimiter({ limit: 3, per: '1h' })
    const other = joinLimiter(structuredClone(one.handle))
    const permit = one.tryAcquire(2)!
    expect(other.tryAcquire()).toBeDefined()
    expect(one.tryAcquire()).toBeUndefined()
    expect(one.explain()).toMatchObject({ waitsFor: 'limit', limits: [{ limit: 3, remaining: 0 }] })
    permit.refund()
    expect(other.tryAcquire(2)).toBeDefined()
    expect(other.tryAcquire()).toBeUndefined()
  })

  test('lets nobody overtake who waits in another thread', async () => {
    const one = sharedLimiter({ limit: 2, per: 100 })
    const other = joinLimiter(one.handle)
    one.tryAcquire(2)
    const waiting = one.acquire(2)
    await new Promise(resolve => setImmediate(resolve))
    const order: string[] = []
    const later = other.acquire().then(() => order.push('later'))
    await waiting.then(() => order.push('first'))
    await later
    expect(order).toEqual(['first', 'later'])
  })

  test('a pause is felt by all; a close ends one part', async () => {
    const one = sharedLimiter({ limit: 2, per: 100 })
    const other = joinLimiter(one.handle)
    one.pauseUntil(Date.now() + 60_000)
    expect(other.tryAcquire()).toBeUndefined()
    const waiting = expect(other.acquire()).rejects.toThrow(ClosedError)
    await other.close()
    await waiting
    expect(() => other.tryAcquire()).toThrow(ClosedError)
    expect(one.tryAcquire()).toBeUndefined()
  })

  test.each([
    [{ limit: 0, per: 1000 }, 'limit takes a whole number'],
    [{ limit: 2_000_000, per: 1000 }, 'limit takes 1000000 at the most'],
    [{ limit: 5, per: 1000, window: 'calendar' }, `window takes 'sliding'`],
    [{ limit: 5, per: 1000, concurrency: 2 }, 'there is no option "concurrency"'],
  ])('%j is refused', (options, message) => {
    expect(() => sharedLimiter(options as SharedLimiterOptions)).toThrow(message)
  })

  test('so is what is no handle', () => {
    for (const handle of [undefined, {}, 5]) {
      expect(() => joinLimiter(handle as never)).toThrow(InvalidArgumentError)
    }
  })
})
