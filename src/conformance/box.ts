import { hostname } from 'node:os'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { ClosedError, LostError } from '../errors.js'
import { testOn } from './boxes.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { locks, pause, queued, soFar, timed, until } from './time.js'

/** What a box tells of itself, and how it ends. */
export function box(fixture: EngineFixture): void {
  describe('a box', () => {
    const test = testOn(fixture)

    test('it tells what its engine guarantees', async boxes => {
      const one = await boxes.open()
      assert.deepEqual(one.guarantees, fixture.guarantees)
    })

    test('each has a session of its own', async boxes => {
      const all = await boxes.several(4)
      assert.equal(new Set(all.map(({ session }) => session)).size, 4)
    })

    describe('inspect', () => {
      test('it shows holders and waiters with all that is known of them', async boxes => {
        const one = await boxes.open({ label: 'the first box' })
        const other = await boxes.open()
        const held = await one.mutex('key').acquire({ label: 'billing', lease: '20s' })
        const asked = other.semaphore('key', { permits: 5 }).acquire({ label: 'shipping', permits: 2 })
        await queued(one, 'key', 1)
        await pause(30)
        const [report] = await locks(other)
        assert.deepEqual(report, {
          key: 'key',
          holders: [
            {
              session: one.session,
              host: hostname(),
              pid: process.pid,
              label: 'billing',
              claim: { key: 'key', mode: 'exclusive' },
              token: held.token,
              age: report!.holders[0]!.age,
              expiresIn: report!.holders[0]!.expiresIn,
            },
          ],
          waiters: [
            {
              session: other.session,
              host: hostname(),
              pid: process.pid,
              label: 'shipping',
              claim: { key: 'key', mode: 'permits', permits: 2, max: 5 },
              token: undefined,
              age: report!.waiters[0]!.age,
              expiresIn: report!.waiters[0]!.expiresIn,
            },
          ],
        })
        for (const { age, expiresIn } of [...report!.holders, ...report!.waiters])
          assert.deepEqual([typeof age, typeof expiresIn], ['number', 'number'])
        const { age, expiresIn } = report!.holders[0]!
        // A timer may end a little early.
        assert.atLeast(age, 29)
        assert.below(age, 15_000)
        assert.above(expiresIn, 0)
        assert.atMost(expiresIn, 20_000)
        await held.release()
        await (await asked).release()
      })

      test('the label of a box stands where a grant has none', async boxes => {
        const one = await boxes.open({ label: 'worker 7' })
        await one.mutex('a').acquire()
        await one.mutex('b').acquire({ label: 'of its own' })
        const labels = new Map((await locks(one)).map(({ key, holders }) => [key, holders[0]!.label]))
        assert.deepEqual(
          labels,
          new Map([
            ['a', 'worker 7'],
            ['b', 'of its own'],
          ]),
        )
      })

      test('a prefix chooses keys', async boxes => {
        const one = await boxes.open()
        for (const key of ['a', 'a/b', 'a/c', 'ab', 'b', 'a%', 'a_c', 'A/d']) await one.mutex(key).acquire()
        const found = async (prefix?: string) => (await locks(one, prefix)).map(({ key }) => key).sort()
        assert.deepEqual(await found('a/'), ['a/b', 'a/c'])
        assert.deepEqual(await found('a'), ['a', 'a%', 'a/b', 'a/c', 'a_c', 'ab'])
        assert.deepEqual(await found('a%'), ['a%'])
        assert.deepEqual(await found('a_'), ['a_c'])
        assert.deepEqual(await found('z'), [])
        assert.hasLength(await found(), 8)
      })

      test('keys may hold any characters', async boxes => {
        const one = await boxes.open()
        const keys = [
          '\u{1F682} 駅',
          "a'b",
          'a"b',
          'a\nb',
          ' ',
          '\t',
          'a;drop table',
          'x'.repeat(1024),
          '\u{10FFFF}',
        ]
        for (const key of keys) await one.mutex(key).acquire()
        assert.deepEqual((await locks(one)).map(({ key }) => key).sort(), [...keys].sort())
        for (const key of keys)
          assert.deepEqual(
            (await locks(one, key)).map(one => one.key),
            [key],
          )
        if (!keepsValues(fixture)) return
        const store = one.store('any')
        for (const key of keys.filter(({ length }) => length < 1000)) {
          await store.transaction([key], transaction => transaction.put(key, key))
          assert.equal((await store.get(key))!.value, key)
        }
      })

      test('what has expired is shown as nobody’s', async boxes => {
        const [one, other] = await boxes.pair()
        const lapsing = await one.mutex('key').acquire({ lease: 40, renew: false })
        await until('it is lost', () => lapsing.expiresIn() === 0)
        await pause(5)
        assert.deepEqual(await locks(other), [])
      })

      test('what a silent box had is shown no longer than its lease', async boxes => {
        const other = await boxes.open()
        const [silent, engine] = await boxes.meddled()
        await silent.mutex('key').acquire({ lease: 1000 })
        await engine.freeze()
        assert.hasLength((await locks(other))[0]!.holders, 1)
        await pause(1100)
        assert.deepEqual(await locks(other), [])
      })

      test('what was released is shown as nobody’s, at once', async boxes => {
        const [one, other] = await boxes.pair()
        for (const box of [one, other]) await box.mutex('key').run(() => undefined)
        await one.readWriteLock('shared').read.run(() => undefined)
        assert.deepEqual(await locks(other), [])
        assert.deepEqual(await locks(one), [])
      })

      test('reading it changes nothing', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('key').acquire()
        const asked = other.mutex('key').acquire()
        await queued(one, 'key', 1)
        for (let round = 0; round < 5; round++) assert.hasLength(await locks(one), 1)
        held.assertHeld()
        assert.equal(await soFar(asked), 'pending')
        await held.release()
        await asked
      })
    })

    describe('close', () => {
      test('it rejects who waits and gives back what is held', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('held').acquire()
        const aborted = new Promise(resolve => {
          held.signal.addEventListener('abort', () => resolve(held.signal.reason))
        })
        const blocking = await other.mutex('waited').acquire()
        const waits = [
          one.mutex('waited').acquire(),
          one.mutex('waited').acquire({ wait: 60_000 }),
          one.mutex('held').acquire(),
          one.mutex('waited').run(() => 'inside'),
        ]
        const outcomes = Promise.all(waits.map(wait => assert.rejects(wait, ClosedError)))
        await queued(other, 'waited', 1)
        await one.close()
        await outcomes
        assert.isA(await aborted, LostError)
        assert.notEqual(await other.mutex('held').tryAcquire(), undefined)
        const [report] = await locks(other, 'waited')
        assert.deepEqual(report!.waiters, [])
        blocking.assertHeld()
      })

      test('closing twice is harmless, also at the same time', async boxes => {
        const one = await boxes.open()
        await one.mutex('key').acquire()
        await Promise.all([one.close(), one.close(), one.close({ drain: true })])
        await one.close()
        await one[Symbol.asyncDispose]()
      })

      test('a box can be left to `await using`', async boxes => {
        const other = await boxes.open()
        {
          await using one = await boxes.open()
          await one.mutex('key').acquire()
        }
        assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
      })

      test('draining waits until the grants in use are released', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('a').acquire()
        const read = await one.readWriteLock('b').read.acquire()
        let closed = false
        const closing = one.close({ drain: true }).then(() => (closed = true))
        await pause(20)
        held.assertHeld()
        await held.release()
        await pause(20)
        assert.equal(closed, false)
        read.assertHeld()
        assert.equal(await other.readWriteLock('b').write.tryAcquire(), undefined)
        await read.release()
        await closing
        await assert.rejects(one.mutex('a').acquire(), ClosedError)
      })

      test('draining refuses who asks anew and rejects who waits, but not what a task needs to end', async boxes => {
        const [one, other] = await boxes.pair()
        const blocking = await other.mutex('waited').acquire()
        const waiting = assert.rejects(one.mutex('waited').acquire(), ClosedError)
        await queued(other, 'waited', 1)
        let go = (): void => undefined
        const gate = new Promise<void>(resolve => (go = resolve))
        let isIn = false
        const task = one.mutex('outer').run(async () => {
          isIn = true
          await gate
          return one.mutex('inner').run(() => 'through')
        })
        await until('the task is in', () => isIn)
        const closing = one.close({ drain: '1m' })
        await waiting
        await assert.rejects(one.mutex('free').acquire(), ClosedError)
        await assert.rejects(one.mutex('free').tryAcquire(), ClosedError)
        go()
        assert.equal(await task, 'through')
        await closing
        blocking.assertHeld()
      })

      test('who was rejected by draining does not hold up those behind it', async boxes => {
        const [one, other, third] = await boxes.several(3)
        const held = await one!.mutex('held').acquire()
        const blocking = await other!.mutex('waited').acquire()
        const waiting = assert.rejects(one!.mutex('waited').acquire(), ClosedError)
        await queued(other!, 'waited', 1)
        const behind = third!.mutex('waited').acquire()
        await queued(other!, 'waited', 2)
        const closing = one!.close({ drain: true })
        await waiting
        await queued(other!, 'waited', 1)
        await blocking.release()
        assert.below(await timed(() => behind), 2000)
        await held.release()
        await closing
      })

      test('draining waits no longer than it may', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('key').acquire()
        assert.atLeast(await timed(() => one.close({ drain: 60 })), 59)
        assert.throws(() => held.assertHeld(), LostError)
        assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
      })

      test('draining does not wait for a grant that was lost', async boxes => {
        const one = await boxes.open()
        await one.mutex('key').acquire({ lease: 50, renew: false })
        assert.below(await timed(() => one.close({ drain: true })), 5000)
      })

      test('draining a box without grants closes it', async boxes => {
        const one = await boxes.open()
        await one.mutex('key').run(() => undefined)
        await one.close({ drain: true })
        await assert.rejects(one.mutex('key').acquire(), ClosedError)
      })

      test('closing without draining puts an end to draining', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('key').acquire()
        const draining = one.close({ drain: true })
        await pause(20)
        held.assertHeld()
        await one.close()
        await draining
        assert.throws(() => held.assertHeld(), LostError)
        assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
      })

      test('a close that was refused for its options can be tried again', async boxes => {
        const [one, other] = await boxes.pair()
        await one.mutex('key').acquire()
        await assert.rejects(one.close({ drain: 'soon' as never }), {
          code: 'INVALID_ARGUMENT',
        })
        await one.close()
        assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
      })

      test('one box closing does not touch another', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await other.mutex('key').acquire()
        const asked = other.mutex('second').acquire()
        await one.close()
        held.assertHeld()
        await (await asked).release()
        await held.release()
      })
    })
  })
}
