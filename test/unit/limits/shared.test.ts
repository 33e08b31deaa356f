import { describe, expect, test, vi } from 'vitest'
import { systemClock, VirtualClock } from '../../../src/base/clock.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { ClosedError, InvalidArgumentError } from '../../../src/base/errors.js'
import { joinLimiter, sharedLimiter, type SharedLimiterOptions } from '../../../src/limits/index.js'
import type { Permit } from '../../../src/limits/permit.js'
import { SharedLimiter } from '../../../src/limits/threads/shared-limiter.js'
import { SharedRing } from '../../../src/limits/threads/shared-ring.js'
import { ThreadTurns, TURNS_BYTES } from '../../../src/limits/threads/thread-turns.js'
import { PermitWaiter } from '../../../src/limits/callers.js'
import { Waiters } from '../../../src/base/waiters.js'
import { pass, settled } from '../../support/passing.js'

/** Creates a queue of callers, each with its number of permits. */
function queue(turns: ThreadTurns, ...wanted: number[]): Waiters<PermitWaiter> {
  const made = new Waiters<PermitWaiter>(new VirtualClock(), {
    timeOver: () => undefined,
    aborted: () => undefined,
  })
  for (const n of wanted) made.add(new PermitWaiter(n, turns.arrive(n), () => undefined))
  return made
}

describe('a ring in shared memory', () => {
  test('a grant that was claimed and not written has no time; what is written is not before its time', () => {
    const origin = systemClock.now() - 1000
    const ring = new SharedRing(SharedRing.memory(4, origin), 150)
    expect(ring.timeOf((ring.head - 4) | 0)).toBe(origin)
    expect(ring.claim(0, 2)).toBe(true)
    expect(ring.claim(0, 1)).toBe(false)
    expect(ring.timeOf(0)).toBeUndefined()
    const now = systemClock.now()
    expect(ring.stamp(0, 2, now)).toBe(true)
    expect(ring.timeOf(1)).toBeGreaterThanOrEqual(now)
    expect(ring.timeOf(1)! - now).toBeLessThan(0.001)
  })

  test('a number that another thread has written in the meantime is not mistaken for a grant', () => {
    const ring = new SharedRing(SharedRing.memory(4, systemClock.now() - 1000), 150)
    ring.claim(0, 1)
    expect(ring.write(0, systemClock.now())).toBe(true)
    expect(ring.stamp(0, 1, systemClock.now())).toBe(false)
  })

  test('a refund above a grant that is not yet written is used once it is written', () => {
    const origin = systemClock.now() - 1000
    const ring = new SharedRing(SharedRing.memory(4, origin), 150)
    const [time, later] = [origin + 500, origin + 600]
    expect([ring.claim(0, 1), ring.claim(1, 1), ring.stamp(1, 1, later)]).toEqual([true, true, true])
    ring.refund(1, 1, later, origin)
    expect(ring.isFree(1)).toBe(true)
    expect(ring.stamp(0, 1, time)).toBe(true)
    expect([ring.isFree(0), ring.timeOf(1)]).toEqual([true, time])
  })

  test('laps and numbers go round', () => {
    const origin = systemClock.now() - 1000
    const ring = new SharedRing(SharedRing.memory(2, origin), 150)
    for (let grant = 0; grant < 1000; grant++) {
      expect(ring.claim(grant, 1)).toBe(true)
      expect(ring.timeOf(grant)).toBeUndefined()
      expect(ring.stamp(grant, 1, origin + grant)).toBe(true)
      expect(ring.timeOf(grant)).toBeCloseTo(origin + grant, 3)
    }
  })
})

describe('threads in a queue', () => {
  /** Creates two threads that share memory and see the time of the test. */
  function twoThreads(now: () => number): readonly [ThreadTurns, ThreadTurns] {
    const memory = new SharedArrayBuffer(TURNS_BYTES)
    return [new ThreadTurns(memory, now), new ThreadTurns(memory, now)]
  }

  test('count the permits wanted by earlier callers', () => {
    const [a, b] = twoThreads(() => 1000)
    const first = queue(a, 2)
    const second = queue(b, 3)
    a.reportWaiters(first, false)
    b.reportWaiters(second, false)
    expect(b.before(second.first!.arrival)).toBe(2)
    expect(a.before(first.first!.arrival)).toBe(0)
    expect(a.before(0)).toBe(3)
    a.reportWaiters(queue(a), false)
    expect(b.before(second.first!.arrival)).toBe(0)
    b.reportWaiters(queue(b), false)
    expect(a.before(0)).toBe(0)
  })

  test('count all callers of a thread, not its first only, and none who came later', () => {
    const [a, b] = twoThreads(() => 1000)
    const first = queue(a, 1, 1, 1)
    const second = queue(b, 1)
    first.add(new PermitWaiter(1, a.arrive(1), () => undefined))
    a.reportWaiters(first, false)
    expect(b.before(second.first!.arrival)).toBe(3)
    expect(b.leastBefore(second.first!.arrival)).toBe(1)
    first.remove(first.first!)
    a.reportWaiters(first, false)
    expect(b.before(second.first!.arrival)).toBe(2)
  })

  test('remove a thread that does not respond to a notification, and no other thread', () => {
    let now = 100_000
    const memory = new SharedArrayBuffer(TURNS_BYTES)
    const [gone, slow, own] = [1, 2, 3].map(() => new ThreadTurns(memory, () => now)) as [
      ThreadTurns,
      ThreadTurns,
      ThreadTurns,
    ]
    const lines = [queue(gone, 2), queue(slow, 3), queue(own, 1)] as const
    gone.reportWaiters(lines[0], false)
    slow.reportWaiters(lines[1], false)
    own.reportWaiters(lines[2], false)
    const { arrival } = lines[2].first!
    // The time since they joined the queue does not matter: they may have had nothing to check.
    now += 1000
    expect(own.removeStalled(arrival, 150)).toBe(false)
    now += 100
    slow.reportWaiters(lines[1], false)
    expect(own.removeStalled(arrival, 150)).toBe(false)
    now += 150
    expect(own.removeStalled(arrival, 150)).toBe(true)
    expect(own.before(arrival)).toBe(3)
    // The thread appears after all, and gets its place back.
    gone.reportWaiters(lines[0], false)
    expect(own.before(arrival)).toBe(5)
  })
})

describe('a limiter that is shared', () => {
  test('keeps each limit, and uses the whole of it, over random takes and refunds', () => {
    const random = new Random(7)
    for (let round = 0; round < 100; round++) {
      const limits = [
        { limit: 1 + random.below(12), per: '1h' },
        { limit: 1 + random.below(12), per: '2h' },
      ] as const
      const one = sharedLimiter({ limits })
      const threads = [one, joinLimiter(one.handle), joinLimiter(one.handle)]
      const most = Math.min(...limits.map(({ limit }) => limit))
      const held: Permit[] = []
      for (let step = 0; step < 60; step++) {
        const thread = threads[random.below(3)]!
        const out = held.reduce((sum, { n }) => sum + n, 0)
        expect(thread.explain().limits.map(({ limit, remaining }) => limit - remaining)).toEqual([out, out])
        if (random.below(3) === 0 && held.length > 0) held.splice(random.below(held.length), 1)[0]!.refund()
        else {
          const n = 1 + random.below(most)
          const permit = thread.tryAcquire(n)
          expect(permit !== undefined).toBe(out + n <= most)
          if (permit) held.push(permit)
        }
      }
    }
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

  test('only callers that have to wait count for the queue of their thread, also of those that come in one tick', async () => {
    const one = sharedLimiter({ limit: 5, per: '1h', queue: 2 })
    const other = joinLimiter(structuredClone(one.handle))
    const outcomes: string[] = []
    const ask = (limiter: SharedLimiter, name: string, times: number): void => {
      for (let caller = 0; caller < times; caller++)
        void limiter.acquire().then(
          () => outcomes.push(name),
          (error: Error) => outcomes.push(`${name}: ${error.message}`),
        )
    }
    ask(one, 'one', 6)
    ask(other, 'other', 3)
    await vi.waitFor(() => expect(outcomes).toHaveLength(6))
    expect(outcomes.filter(outcome => outcome === 'one')).toHaveLength(5)
    expect(outcomes.filter(outcome => outcome !== 'one')).toEqual([
      expect.stringMatching(/^other: .*2 callers are waiting/),
    ])
    for (const limiter of [one, other]) await limiter.close()
  })

  test('a resume in one thread ends the pause for the waiters of another', async () => {
    const one = sharedLimiter({ limit: 2, per: 100 })
    const other = joinLimiter(one.handle)
    one.pauseUntil(Date.now() + 3_600_000)
    const waiting = other.acquire()
    one.resume()
    expect((await waiting).n).toBe(1)
    one.pauseUntil(Date.now() + 3_600_000)
    expect(other.tryAcquire()).toBeUndefined()
    one.resume()
    expect((await other.acquire()).n).toBe(1)
  })

  test('a close with drain lets the waiters have their turn, and there is no other option', async () => {
    const shared = sharedLimiter({ limit: 1, per: 60 })
    const all = Array.from({ length: 3 }, () => shared.acquire())
    await expect(shared.close({ force: true } as never)).rejects.toThrow('unknown option "force"')
    await expect(shared.close({ drain: 'slowly' as never })).rejects.toThrow('drain must be')
    await shared.close({ drain: true })
    await Promise.all(all)
    expect(() => shared.tryAcquire()).toThrow(ClosedError)
    const impatient = sharedLimiter({ limit: 1, per: '1h' })
    await impatient.acquire()
    const refused = expect(impatient.acquire()).rejects.toThrow(ClosedError)
    await impatient.close({ drain: 20 })
    await refused
  })

  test.each([
    [{ limit: 0, per: 1000 }, 'limit must be a whole number'],
    [{ limit: 2_000_000, per: 1000 }, 'limit must be at most 1000000'],
    [{ limit: 2_000_000, per: 1000, window: 'smooth' }, 'limit must be at most 1000000'],
    [{ limit: 5, per: 1000, window: 'weekly' }, `window must be one of 'sliding', 'calendar', 'smooth'`],
    [{ limit: 5, per: 1000.5, window: 'calendar' }, 'per must be whole milliseconds'],
    [{ limit: 5, per: 1000, window: 'calendar', jitter: 1000 }, 'jitter must be less than per'],
    [{ limit: 5, per: '1d', timeZone: 'Europe/Berlin' }, `timeZone needs window 'calendar'`],
    [{ limits: [{ limit: 5, per: '1d', window: 'calendar', timeZone: 'Mars' }] }, 'timeZone must be a name'],
    [{ limit: 5, per: '1d', limits: [] }, 'give either limits or limit, not both'],
    [{ limit: 5, per: 1000, concurrency: 2 }, 'unknown option "concurrency"'],
  ])('%j is refused', (options, message) => {
    expect(() => sharedLimiter(options as SharedLimiterOptions)).toThrow(message)
  })

  test('so is anything else than a handle', () => {
    const { handle: whole } = sharedLimiter({ limit: 1, per: '1s' })
    for (const handle of [undefined, {}, 5, { ...whole, notes: undefined }]) {
      expect(() => joinLimiter(handle as never)).toThrow(InvalidArgumentError)
    }
  })
})

describe('a thread that was ended while many of its callers waited', () => {
  /** Creates threads that share five permits a second, and a thread before them that never continues. */
  function scene() {
    const clock = new VirtualClock(systemClock.now())
    const { handle } = sharedLimiter({ limit: 5, per: '1s' })
    const gone = new ThreadTurns(handle.turns, () => clock.now())
    gone.reportWaiters(queue(gone, ...Array.from({ length: 500 }, () => 1)), false)
    // A permit that no waiter takes stays available for a while.
    clock.advance(1000)
    return { clock, limiter: new SharedLimiter(handle, clock, Date.now) }
  }

  test('keeps back no waiter that is to be served within a while', async () => {
    const { clock, limiter } = scene()
    const asked = limiter.acquire(1, { wait: '1s' })
    await pass(clock, 900)
    expect(await asked).toBeDefined()
  })

  test('nor a caller that tries now and then', () => {
    const { clock, limiter } = scene()
    expect(limiter.tryAcquire()).toBeUndefined()
    clock.advance(60_000)
    expect(limiter.tryAcquire()).toBeDefined()
  })
})

test('a limiter that was closed listens to other threads no longer', async () => {
  const limiter = sharedLimiter({ limit: 5, per: '1s' })
  await limiter.acquire()
  await limiter.close()
  await settled()
  expect(Atomics.notify(new Int32Array(limiter.handle.turns), 2)).toBe(0)
})

test.each(['ring', 'notes', 'turns'] as const)('a handle whose %s has not its size is refused', part => {
  const { handle } = sharedLimiter({
    limits: [
      { limit: 5, per: '1s' },
      { limit: 9, per: '1m', window: 'smooth' },
    ],
  })
  for (const size of [0, 8, 64, 65_536]) {
    expect(() => joinLimiter({ ...handle, [part]: new SharedArrayBuffer(size) })).toThrow(
      InvalidArgumentError,
    )
  }
  expect(() => joinLimiter({ ...handle, limits: undefined as never })).toThrow(InvalidArgumentError)
})
