import { describe, expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { systemClock, VirtualClock } from '../../../src/base/clock.js'
import { FaultInjectingEngine } from '../../../packages/conformance/src/fault-injecting-engine.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { MemoryEngine, MemorySpace } from '../../../src/engines/memory/memory-engine.js'
import { UnavailableError } from '../../../src/base/errors.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import type { BoxDecision, BoxLimiter } from '../../../src/limits/remote/box-limiter.js'
import { limiter, type LimiterOptions } from '../../../src/limits/index.js'
import { Permit } from '../../../src/limits/permit.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'
import { pass } from '../../support/passing.js'

/** Returns an engine that is unavailable for limits. */
function awayEngine(): FaultInjectingEngine {
  const engine = new FaultInjectingEngine(
    new MemoryEngine('memory:test', new MemorySpace(systemClock), systemClock),
  )
  engine.interceptReserve = () => Promise.reject(new UnavailableError('it is away'))
  return engine
}

const PER = 700
const LIMIT = 7

/** Checks that an explanation fits its decision, and the permits given until a moment of the decision. */
function check({ permit, explanation }: BoxDecision, count: NaiveCount, now: number, until: number): void {
  if (!explanation) {
    if (permit) count.add(now, 1)
    return
  }
  const { waitsFor, readyIn, binding, limits } = explanation
  const before = count.grants.filter(({ at }) => at <= until && now - at < PER)
  const used = before.reduce((sum, { n }) => sum + n, permit ? 1 : 0)
  if (permit) count.add(now, 1)
  else expect(waitsFor).not.toBe('nothing')
  if (waitsFor !== 'nothing' && waitsFor !== 'concurrency') expect(readyIn).toBeGreaterThan(0)
  if (binding) expect(limits).toContain(binding)
  expect(limits[0]!.remaining).toBeLessThanOrEqual(LIMIT - used)
}

function withPeriods(per: number) {
  const calendar = { limit: 3, per, window: 'calendar' } as const
  return { limits: [{ limit: LIMIT, per: PER }, calendar] }
}

/** Decides with or without an explanation. */
async function decide(box: BoxLimiter, isTold: boolean): Promise<BoxDecision> {
  if (!isTold) return { permit: await box.tryAcquire(), explanation: undefined }
  const decision = await box.decide()
  expect(decision.explanation).toBeDefined()
  return decision
}

describe('a decision and what it reports are of one moment', () => {
  test.each<LimiterOptions>([
    { limit: LIMIT, per: PER },
    { limit: LIMIT, per: PER, window: 'smooth' },
    { limit: LIMIT, per: PER, concurrency: 3 },
    withPeriods(200),
  ])('in one thread: %j', async options => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = new Random(seed)
      const clock = new VirtualClock(5000)
      const own = limiter({ ...options, clock })
      const count = new NaiveCount()
      for (let step = 0; step < 60; step++) {
        if (random.below(30) === 0) own.pauseUntil(clock.now() + random.below(900))
        if (random.below(3) === 0) {
          const controller = new AbortController()
          clock.after(random.below(900), () => controller.abort())
          const call = own.acquire(1 + random.below(3), { signal: controller.signal })
          void call.then(
            permit => {
              count.add(clock.now(), permit.n)
              clock.after(random.below(300), () => permit.release())
            },
            () => undefined,
          )
        }
        for (let caller = random.below(4); caller > 0; caller--) {
          const decision = own.decide()
          check(decision, count, clock.now(), clock.now())
          clock.after(random.below(300), () => decision.permit?.release())
        }
        await pass(clock, random.below(100))
      }
    }
  })

  test.each<BoxLimiterOptions>([
    { limit: LIMIT, per: PER },
    { limit: LIMIT, per: PER, window: 'smooth' },
    { limit: LIMIT, per: PER, batch: 3 },
    withPeriods(600),
  ])(
    'in boxes at different and changing distances, and no caller waits for more than answers: %j',
    async options => {
      let [admitted, refused] = [0, 0]
      for (let seed = 1; seed <= 30; seed++) {
        const random = new Random(seed)
        const clock = new VirtualClock(5000)
        const server = new Server(clock)
        const boxes = [0, 3, 60].map(roundTrip => new DistantBox(clock, server, roundTrip, options))
        const count = new NaiveCount()
        const decisions: Promise<void>[] = []
        let deciding = 0
        for (let step = 0; step < 60; step++) {
          const box = boxes[random.below(boxes.length)]!
          if (random.below(8) === 0) box.roundTrip = [0, 5, 40, 150][random.below(4)]!
          if (random.below(30) === 0) void box.limiter.pauseUntil(clock.now() + random.below(900))
          if (random.below(3) === 0) {
            const controller = new AbortController()
            clock.after(random.below(900), () => controller.abort())
            const call = box.limiter.acquire(1 + random.below(2), { signal: controller.signal })
            void call.then(
              permit => count.add(clock.now(), permit.n),
              () => undefined,
            )
          }
          for (let caller = random.below(6); caller > 0; caller--) {
            deciding++
            const asked = clock.now()
            const decided = decide(box.limiter, random.below(3) > 0).then(decision => {
              deciding--
              if (decision.permit) admitted++
              else refused++
              check(decision, count, clock.now(), asked)
              // One call may already be under way, and answers may come too late until the hold has grown.
              expect(clock.now() - asked).toBeLessThanOrEqual(5 * 150)
            })
            decided.catch(() => undefined)
            decisions.push(decided)
          }
          await pass(clock, random.below(100))
        }
        await pass(clock, 1000)
        expect(deciding).toBe(0)
        await Promise.all(decisions)
        expect(count.worst(PER)).toBeLessThanOrEqual(LIMIT)
      }
      expect(Math.min(admitted, refused)).toBeGreaterThan(50)
    },
  )
})

test('a decision that is made without the engine reports no limit', async () => {
  await using box = await Box.join(awayEngine(), systemClock)
  const options = { limit: 2, per: '1h' } as const
  const open = box.limiter('open', { ...options, onUnavailable: 'open' })
  expect(await open.decide()).toEqual({ permit: expect.any(Permit) as unknown, explanation: undefined })
  await open.decide()
  expect(await open.decide()).toEqual({ permit: undefined, explanation: undefined })
  await expect(box.limiter('error', options).decide()).rejects.toThrow(UnavailableError)
})
