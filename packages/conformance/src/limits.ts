import { getEventListeners } from 'node:events'
import { describe } from './checks.js'
import { assert } from './assert.js'
import {
  AbortedError,
  type Box,
  type BoxLimiter,
  BusyError,
  ClosedError,
  InvalidArgumentError,
  type LimiterReport,
  type Permit,
  TimedOutError,
  UnavailableError,
} from 'signalbox'
import { systemClock } from 'signalbox/engine'
import { testOn, type Boxes } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { block, pause, soFar, until, watchStandstills } from './time.js'

/**
 * The times at which permits were given, by the clock that all boxes of the check share. The process may stand still
 * before it notes a permit, so each permit has two times.
 */
class Arrivals {
  /** Times at which the permits were noted. */
  readonly times: number[] = []
  /** Last turns of the event loop before that. Each permit was given after this time. */
  readonly earliest: number[] = []
  #turned = systemClock.now()

  constructor(boxes: Boxes) {
    const turns = setInterval(() => (this.#turned = systemClock.now()), 2)
    boxes.atEnd(() => clearInterval(turns))
  }

  readonly note = (): void => {
    this.earliest.push(this.#turned)
    this.times.push(systemClock.now())
  }

  /**
   * Returns the maximum number of permits that certainly came in one interval of this length.
   * @param length milliseconds
   * @param from index of the first permit that counts
   */
  worst(length: number, from = 0): number {
    let worst = 0
    let first = from
    for (let index = from; index < this.times.length; index++) {
      while (this.times[index]! - this.earliest[first]! >= length) first++
      worst = Math.max(worst, index - first + 1)
    }
    return worst
  }
}

/** Time for which the thread may lose its processor before it notes a permit, in milliseconds. */
const JITTER = 100
/**
 * A limit ends when the processes that name it stand still for longer than this, in milliseconds. Then it no longer
 * holds for others.
 */
const STANDSTILL = 2000

async function listed(box: Box, prefix?: string): Promise<LimiterReport[]> {
  const all: LimiterReport[] = []
  for await (const report of box.limiters(prefix)) all.push(report)
  return all
}

/** Rate limits across boxes, for engines that have limits. */
export function limits(fixture: EngineFixture): void {
  const test = testOn(fixture)
  describe('limits', () => {
    test('boxes together stay within the limit in any window, and each serves its callers in order', async boxes => {
      const all = await boxes.several(3)
      const arrivals = new Arrivals(boxes)
      const served = all.map((): number[] => [])
      await Promise.all(
        all.flatMap((box, which) =>
          Array.from({ length: 6 }, (_, turn) =>
            box.limiter('api', { limit: 4, per: 300, jitter: JITTER }).run(() => {
              arrivals.note()
              served[which]!.push(turn)
            }),
          ),
        ),
      )
      assert.hasLength(arrivals.times, 18)
      assert.atMost(arrivals.worst(300), 4)
      for (const turns of served) assert.deepEqual(turns, [0, 1, 2, 3, 4, 5])
    })

    test('a permit that one box used is not available to another until the window has passed', async boxes => {
      const [one, other] = await boxes.pair()
      const per = 1500
      const options = { limit: 3, per }
      const start = systemClock.now()
      const isOpen = (): boolean => systemClock.now() - start < per
      await one.limiter('api', options).acquire(3)
      const taken = await other.limiter('api', options).tryAcquire()
      if (isOpen()) assert.equal(taken, undefined)
      const { waitsFor, readyIn, limits: reports } = await other.limiter('api', options).explain(2)
      assert.has(reports, [{ limit: 3, per, window: 'sliding' }])
      if (isOpen()) {
        assert.equal(waitsFor, 'limit')
        assert.above(readyIn, 0)
        assert.equal(reports[0]!.remaining, 0)
      }
      await other.limiter('api', options).acquire()
      assert.equal(isOpen(), false)
    })

    test('a decision and its explanation come from one answer of the engine', async boxes => {
      const limit = 5
      const limiters = (await boxes.pair()).map(box => box.limiter('api', { limit, per: '1m' }).key('amy'))
      const decisions = await Promise.all(
        Array.from({ length: 2 * limit }, (_, turn) => limiters[turn % 2]!.decide()),
      )
      const admitted = decisions.filter(({ permit }) => permit)
      assert.hasLength(admitted, limit)
      const left = admitted.map(({ explanation }) => explanation!.limits[0]!.remaining)
      left.sort((one, other) => other - one)
      for (const [before, remaining] of left.entries()) assert.below(remaining, limit - before)
      for (const { permit, explanation } of decisions) {
        if (permit) continue
        const { waitsFor, readyIn, binding, limits: reports } = explanation!
        assert.deepEqual([waitsFor, reports[0]!.remaining], ['limit', 0])
        assert.equal(binding, reports[0])
        assert.above(readyIn, 0)
      }
    })

    test('a pause that one box asked for ends for all boxes when another resumes', async boxes => {
      const all = await boxes.pair()
      const [one, other] = all.map(box => box.limiter('paused', { limit: 100, per: '1m' }))
      await one!.pauseUntil(Date.now() + 3_600_000)
      await one!.key('amy').pauseUntil(Date.now() + 3_600_000)
      assert.equal(await other!.tryAcquire(), undefined)
      await assert.rejects(other!.acquire(1, { wait: '1s' }), TimedOutError)
      const waiting = [one!, other!].map(limiter => limiter.acquire())
      await other!.resume()
      for (const permit of await Promise.all(waiting)) permit.release()
      assert.equal(await other!.key('amy').tryAcquire(), undefined)
      assert.equal(await all[1].resumeLimiter('paused'), 1)
      assert.equal(await all[1].resumeLimiter('paused'), 0)
      assert.notEqual(await one!.key('amy').tryAcquire(), undefined)
    })

    test('calls of one moment about one limiter all count', async boxes => {
      const [one, other] = await boxes.pair()
      const limiter = one.limiter('busy', { limit: 2, per: '1h' })
      await limiter.explain()
      const [permit] = await Promise.all([limiter.acquire(2), limiter.explain(), limiter.explain()])
      assert.equal(permit.n, 2)
      assert.equal(await other.limiter('busy', { limit: 2, per: '1h' }).tryAcquire(), undefined)
    })

    test('limiters are listed with their keys: what is used and left, for how long they are paused, who waits', async boxes => {
      const [one, other] = await boxes.pair()
      const daily = { limit: 5, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin' } as const
      const limiter = one.limiter('2:partner', { limits: [{ limit: 2, per: '1m' }, daily] })
      await limiter.acquire(2)
      const waiter = limiter.acquire()
      await limiter.key('amy: x').pauseUntil(Date.now() + 60_000)
      await one.limiter('partner', { limit: 1, per: '1m' }).acquire()
      await until('a process waits', async () => (await listed(other, '2:'))[0]!.waiting.length > 0)
      const [whole, keyed, ...more] = await listed(other, '2:')
      assert.deepEqual(more, [])
      assert.has(whole, { name: '2:partner', key: undefined, pausedFor: 0, waiting: [one.session] })
      assert.has(keyed, { name: '2:partner', key: 'amy: x', waiting: [] })
      assert.above(keyed!.pausedFor, 50_000)
      assert.has(whole!.limits, [
        { limit: 2, per: 60_000, window: 'sliding', timeZone: '', inForce: true, used: 2, remaining: 0 },
        { limit: 5, window: 'calendar', timeZone: 'Europe/Berlin', used: 2, remaining: 3 },
      ])
      assert.above(whole!.limits[0]!.resetIn, 0)
      assert.deepEqual(
        (await listed(other)).map(({ name }) => name),
        ['2:partner', '2:partner', 'partner'],
      )
      await limiter.close()
      await assert.rejects(waiter, ClosedError)
    })

    test('several limits hold together, and each key is counted separately', async boxes => {
      const [one, other] = await boxes.pair()
      const per = 1000
      const options = {
        limits: [
          { limit: 2, per },
          { limit: 3, per: '1m' },
        ],
      } as const
      const start = systemClock.now()
      assert.notEqual(await one.limiter('api', options).tryAcquire(2), undefined)
      const third = await other.limiter('api', options).tryAcquire()
      if (systemClock.now() - start < per) assert.equal(third, undefined)
      if (!third) await other.limiter('api', options).acquire()
      await assert.rejects(one.limiter('api', options).acquire(1, { wait: '2s' }), TimedOutError)
      const { binding, waitsFor } = await one.limiter('api', options).explain()
      assert.deepEqual([binding?.per, waitsFor], [60_000, 'limit'])
      assert.notEqual(await one.limiter('api', options).key('amy').tryAcquire(), undefined)
      assert.notEqual(await one.limiter('api', options).key('ben').tryAcquire(), undefined)
    })

    test('another box can use a refunded permit', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { limit: 2, per: '1m' } as const
      const permit = await one.limiter('api', options).acquire(2)
      assert.equal(await other.limiter('api', options).tryAcquire(), undefined)
      permit.refund()
      permit.refund()
      let again: Permit | undefined
      await until('it is there', async () => {
        again = await other.limiter('api', options).tryAcquire(2)
        return again !== undefined
      })
      assert.equal(await one.limiter('api', options).tryAcquire(), undefined)
    })

    test('boxes share the limits of several units, and the amounts that a call did not use', async boxes => {
      const [one, other] = await boxes.pair()
      const limits = [
        { limit: 10, per: '1m' },
        { limit: 1000, per: '1m', unit: 'tokens' },
      ] as const
      const here = one.limiter('provider', { limits })
      const there = other.limiter('provider', { limits })
      const permit = await here.acquire({ tokens: 900 })
      assert.equal(await there.tryAcquire({ tokens: 101 }), undefined)
      const { binding } = await there.explain({ tokens: 101 })
      assert.has(binding!, { unit: 'tokens', remaining: 100 })
      const waiting = there.acquire({ tokens: 500 })
      permit.settle({ tokens: 500 })
      permit.release()
      const next = await waiting
      next.settle({ tokens: 5000 })
      let explained = await here.explain({ tokens: 0 })
      await until('the rest is owed', async () => {
        explained = await here.explain({ tokens: 0 })
        return explained.waitsFor === 'limit'
      })
      assert.has(explained.limits[0]!, { unit: undefined, remaining: 8 })
      assert.has(explained.limits[1]!, { unit: 'tokens', remaining: 0 })
      assert.equal(await here.tryAcquire({ tokens: 0 }), undefined)
      const [report] = await listed(other, 'provider')
      assert.has(report!.limits[1]!, { limit: 1000, unit: 'tokens', used: 5500 })
    })

    test.alone('a process that was stopped does not use an expired reservation', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { limit: 2, per: 500, jitter: JITTER }
      const arrivals = new Arrivals(boxes)
      await one.limiter('api', options).acquire(2)
      const waiting = [1, 2, 3].map(() => one.limiter('api', options).run(arrivals.note))
      await pause(100)
      const others = [1, 2].map(() => other.limiter('api', options).run(arrivals.note))
      await pause(50)
      block(700)
      await Promise.all([...waiting, ...others])
      assert.hasLength(arrivals.times, 5)
      assert.atMost(arrivals.worst(500), 2)
    })

    test('a caller that gives up leaves its place to the next, and an unused reservation is returned', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const reserved: number[] = []
      const returned: number[] = []
      engine.interceptReserve = async (request, execute) => {
        const answer = await execute()
        reserved.push(...answer.reserved.units.filter(({ n }) => n > 0).map(({ at }) => at))
        returned.push(...request.returns.map(({ at }) => at))
        return answer
      }
      const limiter = box.limiter('api', { limit: 2, per: '8s' })
      await limiter.acquire(2)
      const controller = new AbortController()
      const aborted = limiter.acquire(1, { signal: controller.signal })
      const next = limiter.acquire()
      await until('both have their instants', () => reserved.length - returned.length >= 3)
      const last = Math.max(...reserved)
      controller.abort()
      await assert.rejects(aborted, AbortedError)
      await assert.rejects(aborted, { key: 'api', engine: engine.name })
      await until('one goes back', () => returned.includes(last))
      assert.equal(await soFar(next), 'pending')
      await limiter.close()
      await assert.rejects(next, ClosedError)
      const closed = { code: 'CLOSED', key: 'api', engine: engine.name }
      await assert.rejects(next, closed)
      await assert.rejects(limiter.acquire(), closed)
      await assert.rejects(limiter.key('anna').decide(), closed)
    })

    test('a wait that cannot be met is refused at once, and a full queue refuses with a BusyError', async boxes => {
      const box = await boxes.open()
      const limiter = box.limiter('api', { limit: 1, per: '1m', queue: 1 })
      await limiter.acquire()
      await assert.rejects(
        limiter.acquire(1, { wait: '20s' }),
        /^TimedOutError: can't get a permit .* within 20000 ms: .*its turn would be in \d+ ms/,
      )
      await assert.rejects(limiter.acquire(1, { wait: 0 }), BusyError)
      const waiting = limiter.acquire()
      assert.equal(await soFar(waiting), 'pending')
      await assert.rejects(limiter.acquire(), BusyError)
      await limiter.close()
      await assert.rejects(waiting, ClosedError)
      await assert.rejects(limiter.tryAcquire(), ClosedError)
    })

    test('the engine reports how many processes wait for permits', async boxes => {
      const others = await boxes.several(2)
      const [box, engine] = await boxes.withFaults()
      const contenders: number[] = []
      engine.interceptReserve = async (request, execute) => {
        const answer = await execute()
        // The first request of a process only measures the time to the engine.
        if (request.units.length > 0) contenders.push(answer.reserved.contenders)
        return answer
      }
      const options = { limit: 1, per: '1m' } as const
      const limiter = box.limiter('api', options)
      await limiter.acquire()
      assert.deepEqual(contenders, [0])
      const waiting = others.map(other => other.limiter('api', options).acquire())
      const ended = Promise.allSettled(waiting)
      await until('all three are counted', async () => {
        await assert.rejects(limiter.acquire(1, { wait: 0 }), BusyError)
        return contenders.at(-1) === 3
      })
      assert.above(contenders[1], 0)
      for (const other of others) await other.limiter('api', options).close()
      await ended
    })

    test('the engine reports which part of all tenants that wait a process has', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      let reported: unknown
      engine.interceptReserve = async (request, execute) => {
        const answer = await execute()
        const { contenders, processes } = answer.reserved
        const names = request.tenants?.map(({ name, weight }, index) =>
          [name, weight, processes?.[index]].join(' '),
        )
        reported = [contenders, names?.sort()]
        return answer
      }
      const controller = new AbortController()
      const { signal } = controller
      const wait = (it: Box, tenant: string, weight = 1): Promise<unknown> =>
        it.limiter('api', { limit: 1, per: '1m' }).acquire(1, { tenant, weight, signal })
      await other.limiter('api', { limit: 1, per: '1m' }).acquire()
      const waiting = [wait(other, 'a'), wait(other, 'b'), wait(box, 'a'), wait(box, 'c', 2)]
      const ended = Promise.allSettled(waiting)
      // Half of a, and c with its weight of 2, of a total of 4.
      const expected = JSON.stringify([1.6, ['tenant a 1 2', 'tenant c 2 1']])
      await until('all tenants are counted', () => JSON.stringify(reported) === expected)
      controller.abort()
      await ended
    })

    test('a pause holds back every box, also a caller with a reservation', async boxes => {
      const [one, other] = await boxes.pair()
      // Longer than a loaded machine stalls: the pause has to come before the permit.
      const options = { limit: 1, per: 3000 }
      await one.limiter('api', options).acquire()
      const waiting = other.limiter('api', options).acquire()
      await pause(20)
      const end = Date.now() + 3500
      await one.limiter('api', options).pauseUntil(end)
      assert.equal(await one.limiter('api', options).tryAcquire(), undefined)
      assert.equal((await one.limiter('api', options).explain()).waitsFor, 'pause')
      await waiting
      assert.atLeast(Date.now(), end - 2)
    })

    test('while boxes use different definitions, both limits hold, and every caller gets its permit', async boxes => {
      const [old, next] = await boxes.pair()
      const before = { limit: 6, per: 400, jitter: JITTER }
      const after = { limit: 2, per: 400, jitter: JITTER }
      const arrivals = new Arrivals(boxes)
      const run = (box: Box, options: typeof before): Promise<void>[] =>
        Array.from({ length: 4 }, () => box.limiter('api', options).run(arrivals.note))
      const start = systemClock.now()
      await old.limiter('api', before).acquire(2)
      await next.limiter('api', after).explain()
      const all = [...run(next, after), ...run(old, before)]
      const longestStandstill = watchStandstills(await boxes.open())
      await until('all are through', async () => {
        // A box without waiting callers keeps its definition in force by asking.
        await next.limiter('api', after).explain()
        return arrivals.times.length === 8
      })
      await Promise.all(all)
      // Permits under the old definition count for the new one.
      assert.above(arrivals.times[0]! - start, 300)
      if ((await longestStandstill()) < STANDSTILL) assert.atMost(arrivals.worst(400), 2)
    })

    test('a box refuses another definition of a limiter until that limiter is closed', async boxes => {
      const box = await boxes.open()
      const limiter = box.limiter('api', { limit: 2, per: '1m' })
      await limiter.acquire()
      assert.throws(() => box.limiter('api', { limit: 3, per: '1m' }), InvalidArgumentError)
      assert.notEqual(await box.limiter('api', { limit: 2, per: 60_000 }).tryAcquire(), undefined)
      await limiter.close()
      // No process names the old definition any more. Its permits still count.
      await box.limiter('api', { limit: 3, per: '1m' }).acquire(1, { wait: '20s' })
      assert.equal(await box.limiter('api', { limit: 3, per: '1m' }).tryAcquire(), undefined)
    })

    test('a lowered limit applies at once, a raised one when every box has set it', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { limit: 4, per: 400, jitter: JITTER }
      const limiters = [one.limiter('api', options), other.limiter('api', options)]
      const longestStandstill = watchStandstills(await boxes.open())
      const arrivals = new Arrivals(boxes)
      const waiting = limiters.flatMap(limiter => Array.from({ length: 5 }, () => limiter.run(arrivals.note)))
      await until('the first are through', () => arrivals.times.length >= 3)
      const before = arrivals.times.length
      const tooMuch = limiters[0]!.acquire(3)
      limiters[0]!.setLimit(2)
      await assert.rejects(tooMuch, InvalidArgumentError)
      await Promise.all(waiting)
      if ((await longestStandstill()) < STANDSTILL) assert.atMost(arrivals.worst(400, before + 4), 2)
      assert.equal((await other.limiter('api', options).explain()).limits[0]!.limit, 4)
      assert.equal((await one.limiter('api', options).explain()).limits[0]!.limit, 2)
      limiters[0]!.setLimit(8)
      limiters[1]!.setLimit(8, 400)
      assert.throws(() => limiters[1]!.setLimit(8, 500), InvalidArgumentError)
      await until('both use the new one', async () => {
        const permit = await one.limiter('api', options).tryAcquire(8)
        permit?.refund()
        return permit !== undefined
      })
      await limiters[0]!.close()
      assert.throws(() => limiters[0]!.setLimit(1), ClosedError)
    })

    test('after every box has raised a limit, no caller waits for an old reservation', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      // The box measures the time to the engine first.
      await box.limiter('another', { limit: 1, per: '2s' }).acquire()
      const waits: number[] = []
      engine.interceptReserve = async (request, execute) => {
        const answer = await execute()
        const { now, units, hold } = answer.reserved
        const lead = Math.max(request.hold - hold, 0)
        for (const { n, at } of units) if (n > 0) waits.push(at - lead - now)
        return answer
      }
      const options = { limit: 1, per: '4s' } as const
      const limiters = [other, box].map(one => one.limiter('api', options)) as [BoxLimiter, BoxLimiter]
      // The windows begin 4 s apart. The check uses instants: a stalled machine makes a wait shorter.
      const thirdWindow = performance.now() + 6000
      await limiters[0].acquire()
      // A process reserves one window at most, so a waiter of another box must be before it.
      const before = limiters[0].acquire()
      await until('it has its instant', async () => {
        const asked = performance.now()
        return asked + (await limiters[0].explain()).readyIn > thirdWindow
      })
      const waiting = Array.from({ length: 5 }, () => limiters[1].acquire())
      await until('the first of these has its instant', () => waits.length === 1)
      assert.above(performance.now() + waits[0]!, thirdWindow)
      // Enough even if a stalled process gets permits too late and requests them again.
      for (const one of limiters) one.setLimit(20)
      await Promise.all([before, ...waiting])
      assert.above(waits.length, 5)
      assert.deepEqual(waits.slice(-5).map(Math.floor), [0, 0, 0, 0, 0])
    })

    test('permits that are fetched in batches stay within the limit, and unused ones are returned', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { limit: 50, per: 400, jitter: JITTER, batch: 20 }
      const arrivals = new Arrivals(boxes)
      const work = async (box: Box): Promise<void> => {
        for (let turn = 0; turn < 40; turn++) await box.limiter('api', options).run(arrivals.note)
      }
      await Promise.all([one, other].flatMap(box => [work(box), work(box)]))
      assert.hasLength(arrivals.times, 160)
      assert.atMost(arrivals.worst(400), 50)
      await until(
        'all are there',
        async () => (await other.limiter('api', options).tryAcquire(50)) !== undefined,
      )
    })

    test('calendar and smooth windows hold over several boxes', async boxes => {
      const [one, other] = await boxes.pair()
      const smooth = { limit: 10, per: 500, window: 'smooth' } as const
      const arrivals = new Arrivals(boxes)
      const run = (box: Box) => box.limiter('even', smooth).run(arrivals.note)
      await Promise.all([run(one), run(one), run(other), run(one), run(other)])
      // Four intervals of 51 ms, less the jitter.
      assert.above(arrivals.times[4]! - arrivals.earliest[0]!, 204 - JITTER)
      const calendar = { limit: 2, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin' } as const
      // At midnight in Berlin this check would use two days.
      assert.notEqual(await one.limiter('daily', calendar).tryAcquire(2), undefined)
      assert.equal(await other.limiter('daily', calendar).tryAcquire(), undefined)
    })

    test('an unreachable engine is distinguished from a reached limit', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const failure = new UnavailableError('it is away')
      const options = { limit: 2, per: '1m' } as const
      const of = (onUnavailable: 'error' | 'open' | 'closed' | 'share') =>
        box.limiter(onUnavailable, {
          ...options,
          onUnavailable,
          ...(onUnavailable === 'share' ? { shares: 2 } : {}),
        })
      engine.interceptReserve = () => Promise.reject(failure)
      await assert.rejects(of('error').tryAcquire(), error => error === failure)
      await assert.rejects(of('error').acquire(), error => error === failure)
      assert.equal(of('error').outage, failure)
      for (let turn = 0; turn < 2; turn++) assert.notEqual(await of('open').tryAcquire(), undefined)
      assert.equal(await of('open').tryAcquire(), undefined)
      assert.notEqual(await of('share').tryAcquire(), undefined)
      assert.equal(await of('share').tryAcquire(), undefined)
      await assert.rejects(of('closed').tryAcquire(), error => error === failure)
      await assert.rejects(of('closed').acquire(1, { wait: 50 }), UnavailableError)
      const waiting = of('closed').acquire()
      engine.restore()
      await waiting
      assert.equal(of('closed').outage, undefined)
      // A limiter asks again, and then uses the engine's count.
      await until('it is asked again', async () => {
        await of('open').tryAcquire()
        return of('open').outage === undefined
      })
    })

    test('a signal has one listener for any number of waiting limiters, and none afterwards', async boxes => {
      const box = await boxes.open()
      const { signal } = new AbortController()
      const limiters = Array.from({ length: 12 }, (_, index) =>
        box.limiter(`api ${index}`, { limit: 1, per: '1h', ...(index % 2 === 0 && { concurrency: 1 }) }),
      )
      await Promise.all(limiters.map(limiter => limiter.acquire()))
      const waiting = limiters.map(limiter => limiter.acquire(1, { signal }))
      await pause(50)
      assert.hasLength(getEventListeners(signal, 'abort'), 1)
      const refused = waiting.map(wait => assert.rejects(wait, ClosedError))
      await Promise.all(limiters.map(limiter => limiter.close()))
      await Promise.all(refused)
      assert.hasLength(getEventListeners(signal, 'abort'), 0)
    })

    test('invalid input is refused before anything is sent', async boxes => {
      const [box, engine] = await boxes.withFaults()
      let asked = 0
      engine.interceptReserve = (_, execute) => {
        asked++
        return execute()
      }
      const wrong: readonly object[] = [
        { limit: 0, per: 1000 },
        { limit: 1.5, per: 1000 },
        { limit: NaN, per: 1000 },
        { limit: 2, per: 0 },
        { limit: 2, per: 1000, window: 'round' },
        { limit: 2, per: 1000, concurrency: 0 },
        { limit: 2, per: 1000, onUnavailable: 'perhaps' },
        { limit: 2, per: 1000, onUnavailable: 'share', shares: 3 },
        { limit: 2, per: 1000, batch: 3 },
        { limits: [] },
      ]
      for (const options of wrong)
        assert.throws(() => box.limiter('api', options as never), InvalidArgumentError)
      assert.throws(() => box.limiter('', { limit: 2, per: 1000 }), InvalidArgumentError)
      const known = 'jitter, concurrency, lease, queue, tenantQueue, batch, onUnavailable, shares'
      const both = { limit: 1, per: '1s', limits: [{ limit: 1, per: '1s' }] }
      assert.throws(
        () => box.limiter('api', both as never),
        'give either limits or limit, not both: put limit into each limit of the list',
      )
      const timed = { limit: 1, per: '1s', clock: systemClock }
      assert.throws(
        () => box.limiter('api', timed as never),
        `unknown option "clock"; it must be one of limits, limit, per, window, timeZone, unit, ${known}`,
      )
      const limiter = box.limiter('api', { limit: 2, per: 1000 })
      await assert.rejects(limiter.acquire(3), InvalidArgumentError)
      await assert.rejects(limiter.tryAcquire(0), InvalidArgumentError)
      await assert.rejects(limiter.pauseUntil(NaN), InvalidArgumentError)
      assert.equal(asked, 0)
    })
  })
}

/** An engine without a clock of its own refuses limits, and names the alternative. */
export function noLimits(fixture: EngineFixture): void {
  const test = testOn(fixture)
  test('an engine without a clock refuses limits and names the local limiter', async boxes => {
    const box = await boxes.open()
    assert.throws(() => box.limiter('api', { limit: 2, per: 1000 }), /no shared clock.*limiter\(\)/)
  })
}
