import { hostname } from 'node:os'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { LAPSING, locks, nothingHeld, pause, queued, soFar, timed, until } from './time.js'

/** Results of `inspect` and `isLocked`. Part of the checks of a box. */
export function inspecting(fixture: EngineFixture): void {
  const test = testOn(fixture)

  describe('inspect', () => {
    test('it shows all details of holders and waiters', async boxes => {
      const one = await boxes.open({ label: 'the first box' })
      const other = await boxes.open()
      const held = await one.mutex('key').acquire({ label: 'billing', lease: '20s' })
      const asked = other.semaphore('key', { max: 5 }).acquire({ label: 'shipping', permits: 2 })
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
      // A timer may fire a little early.
      assert.atLeast(age, 29)
      assert.below(age, 15_000)
      assert.above(expiresIn, 0)
      assert.atMost(expiresIn, 20_000)
      await held.release()
      await (await asked).release()
    })

    test("a grant without a label is shown with its box's", async boxes => {
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

    test('a prefix selects keys', async boxes => {
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

    test('`exact` selects the key alone', async boxes => {
      const [one, other] = await boxes.pair()
      for (const key of ['a', 'a/b', 'aa', 'b']) await one.mutex(key).acquire()
      await one.mutex('set 1', 'set 2').acquire()
      await one.readWriteLock('read').read.acquire()
      const waiting = other.mutex('a').acquire()
      await queued(one, 'a', 1)
      const found = async (key: string) =>
        (await locks(other, key, { exact: true })).map(report => [report.key, report.holders.length])
      assert.deepEqual(await found('a'), [['a', 1]])
      assert.deepEqual(await found('a/'), [])
      assert.deepEqual(await found('set 2'), [['set 2', 1]])
      assert.deepEqual(await found('read'), [['read', 1]])
      assert.deepEqual(await found('never locked'), [])
      await one.close()
      await (await waiting).release()
    })

    test('a lock is locked while `tryAcquire` would get nothing', async boxes => {
      const [one, other] = await boxes.pair()
      const { read, write } = other.readWriteLock('rw')
      const two = other.semaphore('permits', { max: 2 })
      const both = other.mutex('key', 'rw')
      const all = () => Promise.all([other.mutex('key'), read, write, two, both].map(lock => lock.isLocked()))
      assert.deepEqual(await all(), [false, false, false, false, false])
      const reader = await one.readWriteLock('rw').read.acquire()
      const permit = await one.semaphore('permits', { max: 2 }).acquire()
      assert.deepEqual(await all(), [false, false, true, false, true])
      const key = await one.mutex('key').acquire()
      const permits = await one.semaphore('permits', { max: 2 }).acquire()
      assert.deepEqual(await all(), [true, false, true, true, true])
      // A writer that waits keeps further readers out.
      const writer = one.readWriteLock('rw').write.acquire()
      await queued(other, 'rw', 1)
      assert.deepEqual(await all(), [true, true, true, true, true])
      for (const grant of [reader, permit, key, permits]) await grant.release()
      await (await writer).release()
      assert.deepEqual(await all(), [false, false, false, false, false])
    })

    test('a key that another program has locked has a holder, with and without a waiter', async boxes => {
      const { place } = boxes
      if (!place.lockOutside) return
      const [one, other] = await boxes.pair()
      const unlock = await place.lockOutside('key')
      const mutex = one.mutex('key')
      const holders = async (): Promise<number> => {
        for await (const report of one.inspect('key', { exact: true })) return report.holders.length
        return 0
      }
      assert.deepEqual([await mutex.isLocked(), await holders()], [true, 1])
      assert.equal(await mutex.tryAcquire(), undefined)
      const waiting = other.mutex('key').acquire({ wait: '20s' })
      assert.equal(await soFar(waiting), 'pending')
      assert.deepEqual([await mutex.isLocked(), await holders()], [true, 1])
      await unlock()
      await (await waiting).release()
      assert.deepEqual([await mutex.isLocked(), await holders()], [false, 0])
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
        const change = () => store.transaction([key], transaction => transaction.put(key, key), { id: key })
        assert.has(await change(), { applied: true })
        assert.deepEqual(await change(), { applied: false })
        assert.equal((await store.get(key))!.value, key)
      }
    })

    test('an expired grant is not shown', async boxes => {
      const [one, other] = await boxes.pair()
      const lapsing = await one.mutex('key').acquire({ lease: LAPSING, renew: false })
      await until('it is lost', () => lapsing.expiresIn() === 0)
      // For the engine, the lease ends later, by the time that the request was under way.
      assert.below(await timed(() => nothingHeld(other)), 4000)
    })

    test('a silent holder is shown no longer than its lease', async boxes => {
      const other = await boxes.open()
      const [silent, engine] = await boxes.withFaults()
      const begun = performance.now()
      await silent.mutex('key').acquire({ lease: LAPSING })
      await engine.freeze()
      const shown = await locks(other)
      if (performance.now() - begun < LAPSING) assert.hasLength(shown[0]?.holders, 1)
      const took = await timed(() => nothingHeld(other))
      assert.below(took, LAPSING + 4000)
    })

    test('a released lock is not shown any more', async boxes => {
      const [one, other] = await boxes.pair()
      for (const box of [one, other]) await box.mutex('key').run(() => undefined)
      await one.readWriteLock('shared').read.run(() => undefined)
      assert.deepEqual(await locks(other), [])
      assert.deepEqual(await locks(one), [])
    })

    test('inspect changes nothing', async boxes => {
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
}
