import { describe } from './checks.js'
import { assert } from './assert.js'
import type { Box } from '../index.js'
import { DeadlockError, InvalidArgumentError, LostError, TimedOutError } from '../errors.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'
import { Section } from './section.js'
import { locks, pause, queued, soFar, until } from './time.js'

/** P6: a grant over several keys is given whole, and claims deadlock in no order. */
export function wholeness(fixture: EngineFixture): void {
  describe('P6 all or nothing', () => {
    const test = testOn(fixture)

    test('a set that can not be had whole leaves its free keys free', async boxes => {
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

    test('a set that waits holds none of its keys', async boxes => {
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

    test('the order and repetition in which keys are named mean nothing', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('b', 'a', 'b', 'c', 'a').acquire()
      assert.deepEqual(held.keys, ['a', 'b', 'c'])
      assert.equal(await other.mutex('c', 'b', 'a').tryAcquire(), undefined)
      await held.release()
      assert.notEqual(await other.mutex('c', 'b', 'a').tryAcquire(), undefined)
    })

    test('a set that gives up leaves nothing on any of its keys', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('b').acquire()
      await assert.rejects(other.mutex('a', 'b', 'c').acquire({ wait: 60 }), TimedOutError)
      await until('only what is held is left', async () => (await locks(one)).length === 1)
      await queued(one, 'b', 0)
      await held.release()
    })

    test('sets in any order, from any box, all come through, with each key in one hand', async boxes => {
      const random = new Random(17)
      const keys = ['a', 'b', 'c', 'd', 'e', 'f']
      const sections = new Map(keys.map(key => [key, new Section()]))
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 8; round++) {
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

    test('claims of several kinds together all come through', async boxes => {
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
      assert.deepEqual(await locks(all[0]!), [])
    })

    describe('deadlocks of a task with itself', () => {
      test('a task that asks for what it holds is told at once', async boxes => {
        const box = await boxes.open()
        await box.mutex('a', 'b').run(async () => {
          await assert.rejects(box.mutex('a').acquire(), DeadlockError)
          await assert.rejects(
            box.mutex('b', 'c').run(() => undefined),
            DeadlockError,
          )
          await assert.rejects(box.readWriteLock('a').read.acquire(), DeadlockError)
          await assert.rejects(box.mutex('a').acquire({ wait: 5000 }), DeadlockError)
          // Trying waits for nobody, so there is nothing to report.
          assert.equal(await box.mutex('a').tryAcquire(), undefined)
        })
        assert.deepEqual(await locks(box), [])
      })

      test('what a task called earlier holds counts, however deep', async boxes => {
        const box = await boxes.open()
        await box.mutex('a').run(() =>
          box.mutex('b').run(() =>
            box.mutex('c').run(async () => {
              await pause(1)
              await assert.rejects(box.mutex('a').acquire(), DeadlockError)
              await assert.rejects(box.mutex('b').acquire(), DeadlockError)
            }),
          ),
        )
      })

      test('what a task held before does not count', async boxes => {
        const box = await boxes.open()
        await box.mutex('a').run(() => pause(1))
        await box.mutex('a').run(() => pause(1))
        let after: Promise<unknown> | undefined
        await box.mutex('a').run(() => {
          after = pause(20).then(() => box.mutex('a').run(() => 'free'))
        })
        assert.equal(await after, 'free')
      })

      test('reading twice is no deadlock', async boxes => {
        const box = await boxes.open()
        const { read } = box.readWriteLock('key')
        assert.equal(await read.run(() => read.run(() => 'inside')), 'inside')
      })

      test('two tasks that wait for each other: one is told, the other goes on', async boxes => {
        const box = await boxes.open()
        const task = (first: string, second: string) =>
          box.mutex(first).run(async () => {
            await pause(20)
            return box.mutex(second).run(() => 'through')
          })
        const outcomes = await Promise.allSettled([task('a', 'b'), task('b', 'a')])
        assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
        const failed = outcomes.find(outcome => outcome.status === 'rejected')
        assert.isA(failed!.reason, DeadlockError)
        assert.deepEqual(await locks(box), [])
      })

      test('a circle of four tasks is found by the last one to close it', async boxes => {
        const box = await boxes.open()
        const keys = ['a', 'b', 'c', 'd']
        const outcomes = await Promise.allSettled(
          keys.map((key, index) =>
            box.mutex(key).run(async () => {
              await pause(10)
              return box.mutex(keys[(index + 1) % 4]!).run(() => 'through')
            }),
          ),
        )
        const failed = outcomes.filter(outcome => outcome.status === 'rejected')
        assert.hasLength(failed, 1)
        assert.isA(failed[0]!.reason, DeadlockError)
      })

      test('a circle through somebody who only stands in line before is found', async boxes => {
        const box = await boxes.open()
        const { read, write } = box.readWriteLock('key')
        const reading = read.run(async () => {
          await queued(box, 'key', 1)
          // The writer waits for this task, and this read would wait behind the writer.
          await assert.rejects(read.acquire(), DeadlockError)
        })
        const writing = write.run(() => 'written')
        await reading
        assert.equal(await writing, 'written')
      })

      test('waiting for another task that waits for nobody is no deadlock', async boxes => {
        const box = await boxes.open()
        const other = box.mutex('b').run(() => pause(40))
        await box.mutex('a').run(() => box.mutex('b').run(() => undefined))
        await other
      })

      test('a reentrant task gets again what it holds, with the same token, and keeps it until its outermost end', async boxes => {
        const [box, other] = await boxes.pair()
        await box.mutex('a', 'b').run(async outer => {
          await box.mutex('a').run(
            async inner => {
              assert.equal(inner.token, outer.token)
              inner.assertHeld()
              assert.above(inner.expiresIn(), 0)
              assert.equal(inner.signal, outer.signal)
              await inner.release()
              inner.assertHeld()
            },
            { reentrant: true },
          )
          await (await box.mutex('b', 'a').acquire({ reentrant: true })).release()
          const again = await box.readWriteLock('b').write.acquire({ reentrant: true })
          await assert.rejects(again.downgrade(), InvalidArgumentError)
          await again.release()
          const read = await box.readWriteLock('a').read.tryAcquire({ reentrant: true })
          await read!.release()
          outer.assertHeld()
          assert.equal(await other.mutex('a').tryAcquire(), undefined)
          // What it does not hold yet it has to wait for as everybody.
          await box.mutex('c').run(grant => assert.notEqual(grant.token, outer.token), { reentrant: true })
        })
        assert.notEqual(await other.mutex('a').tryAcquire(), undefined)
      })

      test('a reentrant write is not had of a grant that was downgraded', async boxes => {
        const [box, other] = await boxes.pair()
        const { read, write } = box.readWriteLock('key')
        await write.run(async outer => {
          await outer.downgrade()
          const there = await other.readWriteLock('key').read.acquire()
          await assert.rejects(write.acquire({ reentrant: true, wait: 50 }), DeadlockError)
          await read.run(inner => inner.assertHeld(), { reentrant: true })
          await there.release()
        })
      })

      test('a nested grant is lost with the outer one', async boxes => {
        const box = await boxes.open()
        const run = box.mutex('key').run(
          async () => {
            const inner = await box.mutex('key').acquire({ reentrant: true })
            await pause(100)
            assert.throws(() => inner.assertHeld(), LostError)
          },
          { lease: 50, renew: false },
        )
        await assert.rejects(run, LostError)
      })

      test('a box that does not follow its tasks lets them wait', async boxes => {
        const box = await boxes.open({ detectDeadlocks: false })
        await box.mutex('key').run(async () => {
          const asked = box.mutex('key').acquire({ wait: 100 })
          assert.equal(await soFar(asked), 'pending')
          await assert.rejects(asked, TimedOutError)
        })
      })

      test('a grant that was acquired without a task is nobody’s circle', async boxes => {
        const box = await boxes.open()
        const held = await box.mutex('key').acquire()
        const asked = box.mutex('key').acquire()
        await pause(10)
        await held.release()
        await (await asked).release()
      })
    })
  })
}
