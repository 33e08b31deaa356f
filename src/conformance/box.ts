import { hostname } from 'node:os'
import { describe } from './checks.js'
import { expect } from './expect.js'
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
      expect(one.guarantees).toEqual(fixture.guarantees)
    })

    test('each has a session of its own', async boxes => {
      const all = await boxes.several(4)
      expect(new Set(all.map(({ session }) => session)).size).toBe(4)
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
        expect(report).toEqual({
          key: 'key',
          holders: [
            {
              session: one.session,
              host: hostname(),
              pid: process.pid,
              label: 'billing',
              claim: { key: 'key', mode: 'exclusive' },
              token: held.token,
              age: expect.any(Number) as number,
              expiresIn: expect.any(Number) as number,
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
              age: expect.any(Number) as number,
              expiresIn: expect.any(Number) as number,
            },
          ],
        })
        const { age, expiresIn } = report!.holders[0]!
        // A timer may end a little early.
        expect(age).toBeGreaterThanOrEqual(29)
        expect(age).toBeLessThan(15_000)
        expect(expiresIn).toBeGreaterThan(0)
        expect(expiresIn).toBeLessThanOrEqual(20_000)
        await held.release()
        await (await asked).release()
      })

      test('the label of a box stands where a grant has none', async boxes => {
        const one = await boxes.open({ label: 'worker 7' })
        await one.mutex('a').acquire()
        await one.mutex('b').acquire({ label: 'of its own' })
        const labels = new Map((await locks(one)).map(({ key, holders }) => [key, holders[0]!.label]))
        expect(labels).toEqual(
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
        expect(await found('a/')).toEqual(['a/b', 'a/c'])
        expect(await found('a')).toEqual(['a', 'a%', 'a/b', 'a/c', 'a_c', 'ab'])
        expect(await found('a%')).toEqual(['a%'])
        expect(await found('a_')).toEqual(['a_c'])
        expect(await found('z')).toEqual([])
        expect(await found()).toHaveLength(8)
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
        expect((await locks(one)).map(({ key }) => key).sort()).toEqual([...keys].sort())
        for (const key of keys) expect((await locks(one, key)).map(one => one.key)).toEqual([key])
        if (!keepsValues(fixture)) return
        const store = one.store('any')
        for (const key of keys.filter(({ length }) => length < 1000)) {
          await store.transaction([key], transaction => transaction.put(key, key))
          expect((await store.get(key))!.value).toBe(key)
        }
      })

      test('what has expired is shown as nobody’s', async boxes => {
        const [one, other] = await boxes.pair()
        const lapsing = await one.mutex('key').acquire({ lease: 40, renew: false })
        await until('it is lost', () => lapsing.expiresIn() === 0)
        await pause(5)
        expect(await locks(other)).toEqual([])
      })

      test('what a silent box had is shown no longer than its lease', async boxes => {
        const other = await boxes.open()
        const [silent, engine] = await boxes.meddled()
        await silent.mutex('key').acquire({ lease: 1000 })
        await engine.freeze()
        expect((await locks(other))[0]!.holders).toHaveLength(1)
        await pause(1100)
        expect(await locks(other)).toEqual([])
      })

      test('what was released is shown as nobody’s, at once', async boxes => {
        const [one, other] = await boxes.pair()
        for (const box of [one, other]) await box.mutex('key').run(() => undefined)
        await one.readWriteLock('shared').read.run(() => undefined)
        expect(await locks(other)).toEqual([])
        expect(await locks(one)).toEqual([])
      })

      test('reading it changes nothing', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('key').acquire()
        const asked = other.mutex('key').acquire()
        await queued(one, 'key', 1)
        for (let round = 0; round < 5; round++) expect(await locks(one)).toHaveLength(1)
        held.assertHeld()
        expect(await soFar(asked)).toBe('pending')
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
        const outcomes = Promise.all(waits.map(wait => expect(wait).rejects.toThrow(ClosedError)))
        await queued(other, 'waited', 1)
        await one.close()
        await outcomes
        expect(await aborted).toBeInstanceOf(LostError)
        expect(await other.mutex('held').tryAcquire()).toBeDefined()
        const [report] = await locks(other, 'waited')
        expect(report!.waiters).toEqual([])
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
        expect(await other.mutex('key').tryAcquire()).toBeDefined()
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
        expect(closed).toBe(false)
        read.assertHeld()
        expect(await other.readWriteLock('b').write.tryAcquire()).toBeUndefined()
        await read.release()
        await closing
        await expect(one.mutex('a').acquire()).rejects.toThrow(ClosedError)
      })

      test('draining refuses who asks anew and rejects who waits, but not what a task needs to end', async boxes => {
        const [one, other] = await boxes.pair()
        const blocking = await other.mutex('waited').acquire()
        const waiting = expect(one.mutex('waited').acquire()).rejects.toThrow(ClosedError)
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
        await expect(one.mutex('free').acquire()).rejects.toThrow(ClosedError)
        await expect(one.mutex('free').tryAcquire()).rejects.toThrow(ClosedError)
        go()
        expect(await task).toBe('through')
        await closing
        blocking.assertHeld()
      })

      test('who was rejected by draining does not hold up those behind it', async boxes => {
        const [one, other, third] = await boxes.several(3)
        const held = await one!.mutex('held').acquire()
        const blocking = await other!.mutex('waited').acquire()
        const waiting = expect(one!.mutex('waited').acquire()).rejects.toThrow(ClosedError)
        await queued(other!, 'waited', 1)
        const behind = third!.mutex('waited').acquire()
        await queued(other!, 'waited', 2)
        const closing = one!.close({ drain: true })
        await waiting
        await queued(other!, 'waited', 1)
        await blocking.release()
        expect(await timed(() => behind)).toBeLessThan(2000)
        await held.release()
        await closing
      })

      test('draining waits no longer than it may', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('key').acquire()
        expect(await timed(() => one.close({ drain: 60 }))).toBeGreaterThanOrEqual(59)
        expect(() => held.assertHeld()).toThrow(LostError)
        expect(await other.mutex('key').tryAcquire()).toBeDefined()
      })

      test('draining does not wait for a grant that was lost', async boxes => {
        const one = await boxes.open()
        await one.mutex('key').acquire({ lease: 50, renew: false })
        expect(await timed(() => one.close({ drain: true }))).toBeLessThan(5000)
      })

      test('draining a box without grants closes it', async boxes => {
        const one = await boxes.open()
        await one.mutex('key').run(() => undefined)
        await one.close({ drain: true })
        await expect(one.mutex('key').acquire()).rejects.toThrow(ClosedError)
      })

      test('closing without draining puts an end to draining', async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('key').acquire()
        const draining = one.close({ drain: true })
        await pause(20)
        held.assertHeld()
        await one.close()
        await draining
        expect(() => held.assertHeld()).toThrow(LostError)
        expect(await other.mutex('key').tryAcquire()).toBeDefined()
      })

      test('a close that was refused for its options can be tried again', async boxes => {
        const [one, other] = await boxes.pair()
        await one.mutex('key').acquire()
        await expect(one.close({ drain: 'soon' as never })).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
        })
        await one.close()
        expect(await other.mutex('key').tryAcquire()).toBeDefined()
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
