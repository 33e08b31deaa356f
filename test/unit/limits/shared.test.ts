import { describe, expect, test, vi } from 'vitest'
import { systemClock, VirtualClock } from '../../../src/base/clock.js'
import { ClosedError, InvalidArgumentError } from '../../../src/base/errors.js'
import { joinLimiter, sharedLimiter, type SharedLimiterOptions } from '../../../src/limits/index.js'
import { SharedLimiter } from '../../../src/limits/threads/shared-limiter.js'
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
  for (const n of wanted) made.add(new PermitWaiter({ n }, n, turns.arrive(n), () => undefined))
  return made
}

describe('threads in a queue', () => {
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
    [{ limit: 2_000_000, per: 1000 }, 'limit must be at most 1000000'],
    [{ limit: 2_000_000, per: 1000, window: 'smooth' }, 'limit must be at most 1000000'],
    [{ limit: 5, per: 1000, concurrency: 2 }, 'unknown option "concurrency"'],
  ])('%j is refused', (options, message) => {
    expect(() => sharedLimiter(options as SharedLimiterOptions)).toThrow(message)
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
