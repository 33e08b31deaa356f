import { describe, expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { VirtualClock } from '../../../src/base/clock.js'
import { FaultInjectingEngine } from '../../../packages/conformance/src/fault-injecting-engine.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { MemoryEngine, MemorySpace } from '../../../src/engines/memory/memory-engine.js'
import { IndeterminateError } from '../../../src/base/errors.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { pass } from '../../support/passing.js'

/** Creates boxes of one engine under a virtual clock, each as in its own process. */
function scene() {
  const clock = new VirtualClock(5000)
  const space = new MemorySpace(clock)
  const join = async (): Promise<[Box, FaultInjectingEngine]> => {
    const engine = new FaultInjectingEngine(new MemoryEngine('memory:test', space, clock))
    return [await Box.join(engine, clock), engine]
  }
  const shares = async (box: Box): Promise<number> => {
    let count = 0
    for await (const { holders, waiters } of box.inspect('limiter:')) count += holders.length + waiters.length
    return count
  }
  return { clock, join, shares }
}

const AMPLE = { limit: 1000, per: 1000 } as const

describe('concurrency of a box', () => {
  test('a call whose share was lost counts no longer, and what is released then is its own', async () => {
    const { clock, join, shares } = scene()
    const [one] = await join()
    const [other] = await join()
    const limiter = one.limiter('api', { ...AMPLE, concurrency: 2 })
    const first = await limiter.acquire()
    for await (const { key, holders } of other.inspect('limiter:'))
      await other.forceRelease(key, holders[0]!.token!)
    const second = await limiter.acquire()
    expect(await shares(other)).toBe(1)
    second.release()
    await pass(clock, 1)
    // The remaining share belongs to the first call, which continues.
    expect(await shares(other)).toBe(1)
    first.release()
    await pass(clock, 1)
    expect(await shares(other)).toBe(0)
  })

  test('a wait is one for the share and for the limit', async () => {
    const { clock, join, shares } = scene()
    const [box] = await join()
    const limiter = box.limiter('api', { limit: 1, per: 1000, concurrency: 1 })
    const first = await limiter.acquire()
    const notes: string[] = []
    const call = (wait: number): void =>
      void limiter.acquire(1, { wait }).then(
        permit => {
          notes.push(`${wait} given ${clock.now() - 5000}`)
          permit.release()
        },
        (error: unknown) => notes.push(`${wait} ${(error as Error).name} ${clock.now() - 5000}`),
      )
    for (const wait of [200, 1000, 1500]) call(wait)
    await pass(clock, 300)
    first.release()
    await pass(clock, 3000)
    expect(notes).toEqual(['200 TimedOutError 200', '1000 TimedOutError 300', '1500 given 1020'])
    expect(await shares(box)).toBe(0)
  })

  test('a wait for a permit in use names the limiter, its key, the time and a holder', async () => {
    const { clock, join } = scene()
    const [one] = await join()
    const [other] = await join()
    const limiterOf = (box: Box) => box.limiter('api', { ...AMPLE, concurrency: 2, lease: '20s' }).key('amy')
    await limiterOf(one).acquire()
    await limiterOf(one).acquire()
    const failed = limiterOf(other)
      .acquire(1, { wait: 3000 })
      .catch((error: unknown) => error)
    await pass(clock, 3000)
    expect(await failed).toMatchObject({
      code: 'TIMED_OUT',
      key: 'api, amy',
      engine: 'memory:test',
      holder: { session: one.session, pid: process.pid },
      message: expect.stringMatching(
        /^timed out after 3000 ms waiting for a permit of key amy of limiter api on memory:test: its concurrency is 2, and all are in use \((last known holder:|held by) .*, pid \d+/,
      ),
    })
    await expect(limiterOf(other).acquire(1, { wait: 0 })).rejects.toThrow(
      'no permit of key amy of limiter api on memory:test is available now: its concurrency is 2, and all are in use',
    )
  })

  test('queue counts the waiters for a share and the waiters for the limit', async () => {
    const { clock, join } = scene()
    const [box] = await join()
    const limiter = box.limiter('api', { limit: 1, per: 1000, concurrency: 2, queue: 2 })
    await limiter.acquire()
    const waiting = [limiter.acquire(), limiter.acquire()]
    await pass(clock, 10)
    await expect(limiter.acquire()).rejects.toThrow(/2 callers are waiting/)
    expect(await limiter.explain()).toMatchObject({ waitsFor: 'concurrency', place: 2, running: 1 })
    const permit = await Promise.race([waiting[0], pass(clock, 1500)])
    expect(permit).toBeDefined()
    waiting[1]!.catch(() => undefined)
    await limiter.close()
    await expect(waiting[1]).rejects.toThrow('limiter api on memory:test was closed')
  })

  test('a decision says whether a share was missing', async () => {
    const { join } = scene()
    const [box] = await join()
    const limiter = box.limiter('api', { ...AMPLE, concurrency: 1 })
    const { permit, explanation } = await limiter.decide()
    expect(explanation).toMatchObject({ waitsFor: 'concurrency', running: 1, limits: [{ remaining: 999 }] })
    expect(await limiter.decide()).toMatchObject({
      permit: undefined,
      explanation: { waitsFor: 'concurrency', limits: [{ remaining: 999 }] },
    })
    permit!.release()
    expect((await limiter.decide()).permit).toBeDefined()
  })

  test('in any schedule there are never more, all have their turn, and nothing is left', async () => {
    for (let seed = 1; seed <= 15; seed++) {
      const random = new Random(seed)
      const { clock, join, shares } = scene()
      const cap = 1 + random.below(3)
      const options: BoxLimiterOptions = {
        limit: [2, 5, 1000][random.below(3)]!,
        per: 500,
        concurrency: cap,
        onUnavailable: random.below(2) === 0 ? 'error' : 'closed',
      }
      const boxes: Box[] = []
      for (let index = 0; index < 3; index++) {
        const [box, engine] = await join()
        boxes.push(box)
        engine.intercept = async (operation, execute) => {
          const way = (): Promise<void> =>
            new Promise(resolve => clock.after([0, 0.5, 3, 20][random.below(4)]!, resolve))
          await way()
          const outcome = await execute()
          await way()
          if (operation.type === 'enqueue' && random.below(20) === 0) throw new IndeterminateError('lost')
          return outcome
        }
      }
      const [watcher] = await join()
      let inUse = 0
      let most = 0
      let open = 0
      let given = 0
      const call = async (box: Box): Promise<void> => {
        const controller = new AbortController()
        if (random.below(4) === 0) clock.after(random.below(800), () => controller.abort())
        const wait = random.below(4) === 0 ? random.below(1000) : undefined
        const priority = random.below(3)
        const duration = random.below(300)
        const refunds = random.below(4) === 0
        open++
        try {
          const limiter = box.limiter('api', options)
          const permit =
            random.below(5) === 0
              ? await limiter.tryAcquire()
              : await limiter.acquire(1, { wait, priority, signal: controller.signal })
          if (!permit) return
          given++
          most = Math.max(most, ++inUse)
          await new Promise<void>(resolve => clock.after(duration, resolve))
          inUse--
          if (refunds) permit.refund()
          else permit.release()
        } catch (error) {
          expect(error).toHaveProperty('code')
        } finally {
          open--
        }
      }
      for (let step = 0; step < 40; step++) {
        const callers = random.below(4)
        for (let caller = 0; caller < callers; caller++) void call(boxes[random.below(3)]!)
        await pass(clock, random.below(200))
      }
      await pass(clock, 120_000)
      expect(most, `seed ${seed}`).toBeLessThanOrEqual(cap)
      expect([open, inUse], `seed ${seed}`).toEqual([0, 0])
      expect(given).toBeGreaterThan(10)
      expect(await shares(watcher), `seed ${seed}`).toBe(0)
    }
  })
})
