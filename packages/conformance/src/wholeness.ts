import { describe } from './checks.js'
import { assert } from './assert.js'
import { type Box, TimedOutError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'
import { Section } from './section.js'
import { locks, pause, queued, until } from './time.js'

/** P6: a grant of several keys is given whole, and claims in any order cause no deadlock. */
export function wholeness(fixture: EngineFixture): void {
  describe('P6 all or nothing', () => {
    const test = testOn(fixture)

    test('a refused set of keys leaves its free keys free', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('b').acquire()
      assert.equal(await other.mutex('a', 'b', 'c').tryAcquire(), undefined)
      for (const key of ['a', 'c']) {
        const grant = await one.mutex(key).tryAcquire()
        assert.notEqual(grant, undefined)
        await grant!.release()
      }
      assert.deepEqual(
        (await locks(one)).map(({ key }) => key),
        ['b'],
      )
      await held.release()
    })

    test('a set of keys that waits holds none of them', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      const asked = other.mutex('a', 'key', 'z').acquire()
      await queued(one, 'key', 1)
      for (const report of await locks(one)) {
        assert.hasLength(report.holders, report.key === 'key' ? 1 : 0)
        assert.hasLength(report.waiters, 1)
      }
      await held.release()
      const grant = await asked
      const reports = await locks(one)
      assert.deepEqual(reports.map(({ key }) => key).sort(), ['a', 'key', 'z'])
      assert.deepEqual(
        reports.map(({ holders }) => holders.length),
        [1, 1, 1],
      )
      await grant.release()
      assert.deepEqual(await locks(one), [])
    })

    test('the order and the repetition of keys have no effect', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('b', 'a', 'b', 'c', 'a').acquire()
      assert.deepEqual(held.keys, ['a', 'b', 'c'])
      assert.equal(await other.mutex('c', 'b', 'a').tryAcquire(), undefined)
      await held.release()
      assert.notEqual(await other.mutex('c', 'b', 'a').tryAcquire(), undefined)
    })

    test('a set of keys that times out leaves nothing on any of them', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('b').acquire()
      await assert.rejects(other.mutex('a', 'b', 'c').acquire({ wait: 60 }), TimedOutError)
      await until('only what is held is left', async () => (await locks(one)).length === 1)
      await queued(one, 'b', 0)
      await held.release()
    })

    test('sets of keys in any order are all granted, and each key has one holder at a time', async boxes => {
      const random = new Random(17)
      const keys = ['a', 'b', 'c', 'd', 'e', 'f']
      const sections = new Map(keys.map(key => [key, new Section()]))
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 4; round++) {
          const some = random.some(keys, 2 + random.below(3))
          await box.mutex(...some).run(async grant => {
            await Promise.all(some.map(key => sections.get(key)!.visit(grant)))
          })
        }
      }
      const all = await boxes.several(4)
      await Promise.all([...all, ...all, ...all].map(task))
      for (const section of sections.values()) assert.equal(section.most, 1)
      assert.deepEqual(await locks(all[0]!), [])
    })

    test('sets of claims of several kinds are all granted', async boxes => {
      const random = new Random(23)
      const keys = ['a', 'b', 'c', 'd']
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 8; round++) {
          const claims = random.some(keys, 1 + random.below(3)).map(key =>
            // Each key has one number of permits, or is a lock for readers and writers.
            key < 'c'
              ? ({ key, mode: 'permits', permits: 1 + random.below(3), max: 3 } as const)
              : ({ key, mode: random.below(2) === 0 ? 'shared' : 'exclusive' } as const),
          )
          await box.lock(...claims).run(() => pause(random.below(2)))
        }
      }
      const all = await boxes.several(3)
      await Promise.all([...all, ...all, ...all].map(task))
      // A box that had asked for one more caller withdraws that request after the caller was served.
      await until('nothing is left', async () => (await locks(all[0]!)).length === 0)
    })
  })
}
