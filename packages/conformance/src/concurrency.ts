import {
  AbortedError,
  type Box,
  type BoxLimiterOptions,
  BusyError,
  ClosedError,
  InvalidArgumentError,
  type Permit,
  TimedOutError,
  UnavailableError,
} from 'signalbox'
import { CLAIM_WINDOW } from 'signalbox/engine'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { assert } from './assert.js'
import type { EngineFixture } from './fixture.js'
import { locks, nothingHeld, pause, queued, soFar, until } from './time.js'

/** A limit that no check reaches. */
const AMPLE = { limit: 1000, per: '1s' } as const
/** The key whose permits are the shares of the limiter `api`. */
const KEY = 'limiter:3:api'

/** The concurrency of rate limits across boxes, for engines that have limits. */
export function concurrency(fixture: EngineFixture): void {
  const test = testOn(fixture)
  describe('concurrency of a limit', () => {
    const limiterOf = (box: Box, options: Partial<BoxLimiterOptions> = {}) =>
      box.limiter('api', { ...AMPLE, ...options } as BoxLimiterOptions)
    const noShareInUse = (box: Box): Promise<void> => nothingHeld(box, 'limiter:')

    test('boxes together stay within the concurrency, and each box serves its callers in order', async boxes => {
      const pair = await boxes.pair()
      let inUse = 0
      let most = 0
      const served = pair.map((): number[] => [])
      await Promise.all(
        pair.flatMap((box, which) =>
          Array.from({ length: 8 }, (_, turn) =>
            limiterOf(box, { concurrency: 3 }).run(async () => {
              served[which]!.push(turn)
              most = Math.max(most, ++inUse)
              await pause(5)
              inUse--
            }),
          ),
        ),
      )
      assert.atMost(most, 3)
      for (const turns of served) assert.deepEqual(turns, [0, 1, 2, 3, 4, 5, 6, 7])
      await noShareInUse(pair[0])
    })

    test('a permit of any weight takes one share, and another box can use a released share', async boxes => {
      const [one, other] = await boxes.pair()
      const [ours, theirs] = [one, other].map(box => limiterOf(box, { concurrency: 3 })) as [
        ReturnType<typeof limiterOf>,
        ReturnType<typeof limiterOf>,
      ]
      assert.notEqual(await ours.tryAcquire(5), undefined)
      const second = await theirs.acquire(2)
      const third = await ours.acquire()
      assert.equal(await ours.tryAcquire(), undefined)
      assert.equal(await theirs.tryAcquire(), undefined)
      await assert.rejects(theirs.acquire(1, { wait: 0 }), BusyError)
      await assert.rejects(theirs.acquire(1, { wait: 20 }), TimedOutError)
      // Each key is counted separately.
      assert.notEqual(await theirs.key('amy').tryAcquire(), undefined)
      const has = (limiter: typeof ours): Promise<void> =>
        until('there is one again', async () => (await limiter.tryAcquire()) !== undefined)
      second.release()
      second.refund()
      await has(ours)
      third[Symbol.dispose]()
      await has(theirs)
      assert.equal(await ours.tryAcquire(), undefined)
    })

    test('processes are served in order of arrival, and within a process greater priorities first', async boxes => {
      const [one, other] = await boxes.pair()
      const order: string[] = []
      const call = (box: Box, name: string, priority = 0): Promise<void> =>
        limiterOf(box, { concurrency: 1 }).run(() => void order.push(name), 1, { priority })
      const first = await limiterOf(one, { concurrency: 1 }).acquire()
      const all = [call(other, 'other')]
      await queued(one, KEY, 1)
      all.push(call(one, 'one'), call(one, 'one more'), call(one, 'one with priority', 1))
      assert.equal(await soFar(Promise.race(all)), 'pending')
      assert.has(await limiterOf(one, { concurrency: 1 }).explain(), {
        waitsFor: 'concurrency',
        place: 3,
        running: 1,
      })
      // A box passes a permit on among its callers for 5 ms at most.
      await pause(10)
      const begun = performance.now()
      first.release()
      await Promise.all(all)
      // A process that stands still for the claim window loses its turn.
      if (performance.now() - begun < CLAIM_WINDOW) assert.equal(order[0], 'other')
      const ofOne = order.filter(name => name !== 'other')
      assert.deepEqual(ofOne, ['one with priority', 'one', 'one more'])
    })

    test('a caller that gets no permit leaves no share in use', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { limit: 1, per: '1m', concurrency: 2 } as const
      const limiter = limiterOf(one, options)
      const permit = await limiter.acquire()
      assert.equal(await limiter.tryAcquire(), undefined)
      await assert.rejects(limiter.acquire(1, { wait: '20s' }), /its turn would be in \d+ ms/)
      const controller = new AbortController()
      const aborted = limiterOf(other, options).acquire(1, { signal: controller.signal })
      await until('it has a share', async () => (await locks(one, KEY))[0]?.holders.length === 2)
      // It holds a share while it waits for the limit.
      assert.has(await limiter.explain(), { waitsFor: 'limit', running: 1, place: 0 })
      const waiting = limiter.acquire(1, { signal: controller.signal })
      await queued(one, KEY, 1)
      controller.abort(new Error('enough'))
      await Promise.all(
        [aborted, waiting].map(async each => {
          await assert.rejects(each, AbortedError)
          await assert.rejects(each, { key: 'api', cause: { message: 'enough' } })
        }),
      )
      permit.release()
      await noShareInUse(one)
    })

    test('a share that arrives as its waiter gives up is returned', async boxes => {
      const [one, other] = await boxes.pair()
      const options = { concurrency: 1 }
      for (let round = 0; round < 12; round++) {
        const held = await limiterOf(one, options).acquire()
        const controller = new AbortController()
        const asked = limiterOf(other, options).acquire(1, { signal: controller.signal })
        const ended = asked.then(
          permit => permit.release(),
          (error: unknown) => assert.isA(error, AbortedError),
        )
        await queued(one, KEY, 1)
        held.release()
        if (round % 4 > 0) await pause(round % 4)
        controller.abort()
        await ended
        await noShareInUse(one)
      }
    })

    test('tenants take turns with the shares of a box', async boxes => {
      const box = await boxes.open()
      const limiter = limiterOf(box, { concurrency: 1 })
      const held = await limiter.acquire()
      const order: string[] = []
      const calls = ['flood', 'flood', 'flood', 'flood', 'other'].map(tenant =>
        limiter.run(() => void order.push(tenant), 1, { tenant }),
      )
      held.release()
      await Promise.all(calls)
      assert.deepEqual(order, ['flood', 'other', 'flood', 'flood', 'flood'])
    })

    test('other boxes can use the shares of a closed box and of a revoked session', async boxes => {
      const [one, other, third] = (await boxes.several(3)) as [Box, Box, Box]
      const options = { concurrency: 2 }
      await limiterOf(one, options).acquire()
      await limiterOf(one, options).acquire()
      const waiting = [1, 2].map(() => limiterOf(other, options).acquire())
      await until('it waits', async () => (await locks(third, KEY))[0]!.waiters.length > 0)
      await one.close()
      const permits = await Promise.all(waiting)
      assert.equal(await limiterOf(third, options).tryAcquire(), undefined)
      await third.revoke(other.session)
      await limiterOf(third, options).acquire()
      await limiterOf(third, options).acquire()
      // A permit whose share was lost returns no other share.
      for (const permit of permits) permit.release()
      assert.equal(await limiterOf(other, options).tryAcquire(), undefined)
    })

    test.runIf(fixture.guarantees.scope !== 'thread')(
      'the shares of a killed process come back as its locks do, and a caller that waited knows who has them',
      async boxes => {
        const box = await boxes.open()
        const atOnce = fixture.guarantees.deadHolder === 'at once'
        const lease = atOnce ? '30s' : '3s'
        const limiter = limiterOf(box, { concurrency: 2, lease })
        const child = boxes.program('permits', lease)
        await child.printed('holding')
        const [{ holders } = { holders: [] }] = await locks(box, KEY)
        const late: unknown = await limiter.acquire(1, { wait: 200 }).catch((error: unknown) => error)
        assert.isA(late, TimedOutError)
        const { message, key, holder } = late as TimedOutError
        assert.equal(key, 'api')
        assert.includes(message, 'timed out after 200 ms waiting for a permit of limiter api')
        if (holder) {
          assert.equal(holder.session, holders[0]!.session)
          assert.includes(message, `pid ${holder.pid}`)
        }
        const asked = limiter.acquire()
        await queued(box, KEY, 1)
        const killed = performance.now()
        child.kill('SIGKILL')
        await asked
        await limiter.acquire()
        if (atOnce) assert.below(performance.now() - killed, 5000)
      },
    )

    test('callers of one tick that need not wait leave the queue to others', async boxes => {
      const box = await boxes.open()
      const queue = 5
      const limiters = [
        box.limiter('limit', { limit: 10, per: '1h', queue }),
        box.limiter('amy', { limit: 10, per: '1h', queue }).key('amy'),
        box.limiter('in use', { limit: 100, per: '1h', concurrency: 10, queue }),
        box.limiter('both', { limit: 10, per: '1h', concurrency: 20, queue }),
      ]
      await Promise.all(
        limiters.map(async limiter => {
          let given = 0
          const refused: unknown[] = []
          for (let caller = 0; caller < 16; caller++)
            void limiter.acquire().then(
              () => given++,
              (error: unknown) => refused.push(error),
            )
          await until('each is given, waits or is refused', () => given === 10 && refused.length === 1)
          assert.isA(refused[0], BusyError)
          assert.includes((refused[0] as BusyError).message, '5 callers are waiting')
        }),
      )
    })

    test('close refuses callers that wait for a share, and close with drain serves them', async boxes => {
      const box = await boxes.open()
      const options = { concurrency: 1 }
      let limiter = limiterOf(box, options)
      const permit = await limiter.acquire()
      const refused = limiter.acquire()
      refused.catch(() => undefined)
      await limiter.close()
      await assert.rejects(refused, ClosedError)
      limiter = limiterOf(box, options)
      // The permit still counts.
      assert.equal(await limiter.tryAcquire(), undefined)
      const waiting = [1, 2].map(() => limiter.run(() => pause(1)))
      const closed = limiter.close({ drain: true })
      await assert.rejects(limiter.acquire(), ClosedError)
      assert.equal(await soFar(closed), 'pending')
      permit.release()
      await Promise.all(waiting)
      await closed
      await noShareInUse(box)
    })

    test('a different concurrency is refused in the same box, and gets its proportion in another box', async boxes => {
      const [old, next] = await boxes.pair()
      const has = async (box: Box, number: number): Promise<Permit | undefined> =>
        limiterOf(box, { concurrency: number }).tryAcquire()
      const half = await has(old, 2)
      assert.throws(() => limiterOf(old, { concurrency: 3 }), InvalidArgumentError)
      assert.throws(() => limiterOf(old), InvalidArgumentError)
      assert.excludes([await has(next, 6), await has(next, 6), await has(next, 6)], undefined)
      assert.deepEqual([await has(next, 6), await has(old, 2)], [undefined, undefined])
      half!.release()
      let more = 0
      await until('three more are given', async () => {
        if (await has(next, 6)) more++
        return more === 3
      })
      assert.equal(await has(next, 6), undefined)
    })

    test('setting a limit does not change the concurrency', async boxes => {
      const box = await boxes.open()
      const limiter = limiterOf(box, { concurrency: 1 })
      const permit = await limiter.acquire()
      const tooMuch = limiter.acquire(20)
      const waiting = limiter.acquire(5)
      limiter.setLimit(10)
      await assert.rejects(tooMuch, InvalidArgumentError)
      assert.equal(await limiter.tryAcquire(), undefined)
      permit.release()
      assert.equal((await waiting).n, 5)
    })

    test('while the engine is unreachable, `onUnavailable` decides about the concurrency', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const failure = new UnavailableError('it is away')
      const of = (onUnavailable: 'error' | 'open' | 'closed' | 'share', key = 'a') =>
        box
          .limiter(onUnavailable, {
            ...AMPLE,
            concurrency: 2,
            onUnavailable,
            ...(onUnavailable === 'share' ? { shares: 2 } : {}),
          })
          .key(key)
      const permits = [await of('open', 'b').acquire(), await of('open', 'b').acquire()]
      const waiting = of('open', 'b').acquire()
      await until('it waits', async () => (await of('open', 'b').explain()).place === 1)
      engine.interceptReserve = () => Promise.reject(failure)
      engine.intercept = (operation, execute) =>
        operation.type === 'inspect' ? execute() : Promise.reject(failure)
      await assert.rejects(of('error').tryAcquire(), error => error === failure)
      await assert.rejects(of('error').acquire(), error => error === failure)
      assert.equal(of('error').outage, failure)
      for (let turn = 0; turn < 2; turn++) assert.notEqual(await of('open').tryAcquire(), undefined)
      assert.equal(await of('open').tryAcquire(), undefined)
      const share = await of('share').tryAcquire()
      assert.notEqual(share, undefined)
      assert.equal(await of('share').tryAcquire(), undefined)
      share!.release()
      assert.notEqual(await of('share').tryAcquire(), undefined)
      await assert.rejects(of('closed').tryAcquire(), error => error === failure)
      await assert.rejects(of('closed').acquire(1, { wait: 50 }), UnavailableError)
      const closed = of('closed').acquire()
      // The failed return of a share shows the waiters that the engine is unreachable.
      permits[0]!.release()
      await waiting
      assert.equal(await soFar(closed), 'pending')
      engine.restore()
      await closed
      await until('it is asked again', async () => {
        ;(await of('open').tryAcquire())?.release()
        return of('open').outage === undefined
      })
    })

    test('an invalid concurrency is refused', async boxes => {
      const box = await boxes.open()
      for (const number of [0, 1.5, -1, NaN, Infinity, 10_001, '3', null]) {
        assert.throws(
          () => limiterOf(box, { concurrency: number as number }),
          /concurrency must be a whole number from 1 to/,
        )
      }
      assert.throws(
        () => limiterOf(box, { concurrency: 2, onUnavailable: 'share', shares: 3 }),
        /shares must be at most 2, the concurrency/,
      )
    })
  })
}
