import { describe } from './checks.js'
import { assert } from './assert.js'
import { AbortedError, type Box, type Grant, type Lock } from 'signalbox'
import { CLAIM_WINDOW } from 'signalbox/engine'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { assertServed, handOver, locks, pause, queued, soFar, until } from './time.js'

/** P4: remote waiters are served in arrival order; callers inside a process in call order. */
export function order(fixture: EngineFixture): void {
  describe('P4 first come, first served', () => {
    const test = testOn(fixture)

    /** Runs a task that notes the name; settles when the request is in the engine's queue. */
    async function arrive(box: Box, lock: Lock, name: string, served: string[], place: number) {
      const done = lock.run(() => void served.push(name), { ownRequest: true })
      await queued(box, 'key', place)
      return { done }
    }

    test('boxes are served in order of arrival, also if each asks several times', async boxes => {
      const first = await boxes.open()
      const others = await boxes.several(3)
      const held = await first.mutex('key').acquire()
      const served: string[] = []
      const waiting = []
      for (let place = 1; place <= 6; place++) {
        const box = others[place % 3]!
        waiting.push(await arrive(box, box.mutex('key'), `${place}`, served, place))
      }
      const isInOrder = await handOver(
        held,
        waiting.map(({ done }) => done),
      )
      assertServed(served, ['1', '2', '3', '4', '5', '6'], isInOrder)
    })

    test('callers of one box are served in call order when some of them give up', async boxes => {
      const box = await boxes.open()
      const held = await box.mutex('key').acquire()
      const served: number[] = []
      const controller = new AbortController()
      const { signal } = controller
      const waiting = Array.from({ length: 60 }, (_, index) =>
        box.mutex('key').run(() => void served.push(index), index % 3 === 1 ? { signal } : {}),
      )
      const settled = Promise.allSettled(waiting)
      controller.abort()
      await held.release()
      const outcomes = await settled
      const expected = Array.from({ length: 60 }, (_, index) => index).filter(index => index % 3 !== 1)
      assert.deepEqual(served, expected)
      assert.hasLength(
        outcomes.filter(({ status }) => status === 'rejected'),
        20,
      )
      await assert.rejects(waiting[1]!, AbortedError)
    })

    test('callers of one box with different waits, leases and labels keep their order', async boxes => {
      const box = await boxes.open()
      const held = await box.mutex('key').acquire()
      const served: number[] = []
      const waiting = Array.from({ length: 24 }, (_, index) =>
        box.mutex('key').run(() => void served.push(index), {
          wait: 15_000 + index,
          lease: 10_000 + 1000 * (index % 3),
          label: `caller ${index % 4}`,
          renew: index % 2 === 0,
        }),
      )
      await pause(10)
      await held.release()
      await Promise.all(waiting)
      assert.deepEqual(
        served,
        Array.from({ length: 24 }, (_, index) => index),
      )
    })

    test('callers of one box with requests of their own are served in call order, over modes', async boxes => {
      const box = await boxes.open()
      const { read, write } = box.readWriteLock('key')
      const held = await write.acquire()
      const served: string[] = []
      const names = ['writer 1', 'reader 2', 'writer 3', 'two readers', 'two readers', 'writer 6']
      const waiting = names.map(name =>
        (name.startsWith('writer') ? write : read).run(() => void served.push(name), { ownRequest: true }),
      )
      await queued(box, 'key', names.length)
      assertServed(served, names, await handOver(held, waiting))
    })

    test('callers of one box with requests of their own are served in call order, over sets of keys', async boxes => {
      const [holder, box] = await boxes.pair()
      const held = await holder.mutex('a', 'b', 'c').acquire()
      const served: string[] = []
      const names = ['a', 'a', 'a b', 'b', 'b c', 'c']
      const waiting = names.map(name =>
        box.mutex(...name.split(' ')).run(() => void served.push(name), { ownRequest: true }),
      )
      await queued(holder, 'a', 3)
      await queued(holder, 'b', 3)
      await queued(holder, 'c', 2)
      assertServed(served, names, await handOver(held, waiting))
    })

    test('callers of one tick are served in call order on unused keys, beside other keys', async boxes => {
      const box = await boxes.open()
      const turns = Array.from({ length: 20 }, async (_, round) => {
        const key = `new ${round}`
        const served: string[] = []
        const serve = (lock: Lock, name: string) => lock.run(() => void served.push(name))
        await Promise.all([
          box.mutex(`beside ${round}`).run(() => undefined),
          serve(box.readWriteLock(key).read, 'reader'),
          serve(box.mutex(key, `${key} too`), 'two keys'),
          serve(box.readWriteLock(key).write, 'writer'),
        ])
        return served.join(', ')
      })
      assert.deepEqual(new Set(await Promise.all(turns)), new Set(['reader, two keys, writer']))
    })

    test('an attempt during a hand-over does not overtake a waiter', async boxes => {
      const all = await boxes.several(3)
      const held = await all[0]!.mutex('key').acquire()
      const waiting = all[1]!.mutex('key').acquire()
      await queued(all[1]!, 'key', 1)
      const begun = performance.now()
      const taking = held.release()
      for (const box of [all[0]!, all[2]!]) {
        const taken = await box.mutex('key').tryAcquire()
        // A waiter that stands still for the claim window loses its turn.
        if (performance.now() - begun < CLAIM_WINDOW) assert.equal(taken, undefined)
        await taken?.release()
      }
      await taking
      const grant = await waiting
      assert.equal(await all[2]!.mutex('key').tryAcquire(), undefined)
      await grant.release()
    })

    test('a box with endless callers hands over after a bounded number of turns', async boxes => {
      const [busy, other] = await boxes.pair()
      let turns = 0
      const stop = new AbortController()
      const endless = async (): Promise<void> => {
        // It lets the event loop turn now and then, or the other box could not ask at all.
        while (!stop.signal.aborted)
          await busy.mutex('key').run(() => (++turns % 8 === 0 ? pause(0) : undefined))
      }
      const loops = Promise.all([endless(), endless(), endless(), endless()])
      await pause(5)
      for (let round = 0; round < 5; round++) {
        const asked = other.mutex('key').acquire()
        await until('the request waits or is granted', async () => {
          if ((await soFar(asked)) !== 'pending') return true
          return (await locks(other, 'key')).some(({ waiters }) => waiters.length === 1)
        })
        const before = turns
        const begun = performance.now()
        const grant = await asked
        // The remaining turns of the current grant and those of one more, unless the waiter stood still. The reply that
        // no other request waits may have been on its way, and on PostgreSQL allows turns for 2 ms.
        if (performance.now() - begun < CLAIM_WINDOW) assert.atMost(turns - before, 200)
        await grant.release()
      }
      stop.abort()
      await loops
    })

    test('a waiting writer keeps later readers out, and earlier readers stay in', async boxes => {
      const all = await boxes.several(5)
      const served: string[] = []
      const lock = (place: number) => all[place]!.readWriteLock('key')
      const held = await lock(0).read.acquire()
      const waiting = [
        await arrive(all[1]!, lock(1).write, 'writer', served, 1),
        await arrive(all[2]!, lock(2).read, 'reader', served, 2),
        await arrive(all[3]!, lock(3).read, 'reader', served, 3),
        await arrive(all[4]!, lock(4).write, 'last writer', served, 4),
      ]
      assert.equal(await lock(0).read.tryAcquire(), undefined)
      held.assertHeld()
      assert.deepEqual(served, [])
      const isInOrder = await handOver(
        held,
        waiting.map(({ done }) => done),
      )
      assertServed(served, ['writer', 'reader', 'reader', 'last writer'], isInOrder)
    })

    test('writers are served although new readers keep coming', async boxes => {
      const [one, other] = await boxes.pair()
      const stop = new AbortController()
      const endless = async (box: Box): Promise<void> => {
        while (!stop.signal.aborted) await box.readWriteLock('key').read.run(() => pause(1))
      }
      const loops = Promise.all([one, other, one, other].map(endless))
      await pause(5)
      for (const box of [one, other, one]) {
        const grant = await box.readWriteLock('key').write.acquire({ wait: 10_000 })
        await grant.release()
      }
      stop.abort()
      await loops
    })

    test('a waiter for few permits does not overtake a waiter for many', async boxes => {
      const all = await boxes.several(4)
      const permits = (place: number) => all[place]!.semaphore('key', { max: 4 })
      const held = await permits(0).acquire({ permits: 2 })
      const served: string[] = []
      const many = permits(1).run(() => void served.push('many'), { permits: 4 })
      await queued(all[1]!, 'key', 1)
      const few = permits(2).run(() => void served.push('few'))
      await queued(all[2]!, 'key', 2)
      assert.equal(await permits(3).tryAcquire(), undefined)
      await pause(10)
      assert.deepEqual(served, [])
      const isInOrder = await handOver(held, [many, few])
      assertServed(served, ['many', 'few'], isInOrder)
    })

    test('a set of keys that waits for one key is not overtaken on its others', async boxes => {
      const all = await boxes.several(4)
      const held = await all[0]!.mutex('a').acquire()
      const served: string[] = []
      const both = all[1]!.mutex('a', 'key').run(() => void served.push('both'))
      await queued(all[1]!, 'key', 1)
      const later = await arrive(all[2]!, all[2]!.mutex('key'), 'later', served, 2)
      assert.equal(await all[3]!.mutex('key').tryAcquire(), undefined)
      await pause(10)
      assert.deepEqual(served, [])
      const isInOrder = await handOver(held, [both, later.done])
      assertServed(served, ['both', 'later'], isInOrder)
    })

    test('a set of keys of a new box does not overtake one that waits', async boxes => {
      const all = await boxes.several(3)
      for (let round = 0; round < 4; round++) {
        const fresh = await boxes.open()
        const held = await all[0]!.mutex('key', 'a').acquire()
        const served: string[] = []
        const first = all[1]!.mutex('key', 'b').acquire()
        await queued(all[1]!, 'key', 1)
        const second = all[2]!.mutex('key', 'c').run(() => void served.push('second'))
        await queued(all[2]!, 'key', 2)
        await held.release()
        const grant = await first
        const releasing = grant.release()
        // The key may be free for a moment.
        await pause(round)
        const third = fresh.mutex('key', 'd').run(() => void served.push('third'))
        await Promise.all([releasing, second, third])
        assert.deepEqual(served, ['second', 'third'])
      }
    })

    test('inspect lists the waiters in the order in which they will be served', async boxes => {
      const first = await boxes.open()
      const held = await first.mutex('key').acquire()
      const waiting: Promise<Grant>[] = []
      const sessions: string[] = []
      for (let place = 1; place <= 4; place++) {
        const box = await boxes.open()
        sessions.push(box.session)
        waiting.push(box.mutex('key').acquire())
        await queued(box, 'key', place)
      }
      const [report] = await locks(first, 'key')
      assert.deepEqual(
        report!.waiters.map(({ session }) => session),
        sessions,
      )
      await held.release()
      for (const asked of waiting) await (await asked).release()
    })
  })
}
