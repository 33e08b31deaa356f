import { describe } from './checks.js'
import { expect } from './expect.js'
import type { Box, Lock } from '../index.js'
import { BusyError, LostError } from '../errors.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'
import { rising, Section } from './section.js'
import { locks, pause, queued, soFar, until } from './time.js'

/** P1: while `assertHeld()` passes, no other caller of the same engine holds a conflicting grant. */
export function exclusion(fixture: EngineFixture): void {
  describe('P1 exclusion', () => {
    const test = testOn(fixture)

    test('a mutex has one holder at a time, and each later one has a greater token', async boxes => {
      const section = new Section()
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 6; round++) {
          await box.mutex('key').run(grant => section.visit(grant))
        }
      }
      await Promise.all((await boxes.several(3)).flatMap(box => [task(box), task(box), task(box)]))
      expect(section.most).toBe(1)
      expect(section.tokens).toHaveLength(54)
      expect(rising(section.tokens)).toBe(true)
      expect(await locks(await boxes.open())).toEqual([])
    })

    test('a semaphore has several permits out, and never more than it has', async boxes => {
      const random = new Random(11)
      const section = new Section()
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 6; round++) {
          const permits = 1 + random.below(3)
          await box.semaphore('key', { permits: 4 }).run(grant => section.visit(grant, permits), { permits })
        }
      }
      await Promise.all((await boxes.several(3)).flatMap(box => [task(box), task(box), task(box)]))
      expect(section.most).toBeGreaterThan(1)
      expect(section.most).toBeLessThanOrEqual(4)
      expect(section.tokens).toHaveLength(54)
    })

    test('all permits of a semaphore can be out at once, from one box or several', async boxes => {
      const [one, other] = await boxes.pair()
      const first = one.semaphore('key', { permits: 5 })
      const second = other.semaphore('key', { permits: 5 })
      const grants = [
        await first.acquire(),
        await first.acquire({ permits: 2 }),
        await second.acquire(),
        await second.acquire({ permits: 1 }),
      ]
      expect(await first.tryAcquire()).toBeUndefined()
      expect(await second.tryAcquire()).toBeUndefined()
      await grants[1]!.release()
      const both = await second.tryAcquire({ permits: 2 })
      expect(both).toBeDefined()
      expect(await first.tryAcquire()).toBeUndefined()
      for (const grant of [...grants, both!]) await grant.release()
      expect(await second.tryAcquire({ permits: 5 })).toBeDefined()
    })

    test('readers are in together, a writer alone', async boxes => {
      const readers = new Section()
      const writers = new Section()
      const task = async (box: Box, write: boolean): Promise<void> => {
        const { read, write: writing } = box.readWriteLock('key')
        for (let round = 0; round < 6; round++) {
          await (write
            ? writing.run(grant => both(readers.visit(grant, 100), writers.visit(grant)))
            : read.run(grant => readers.visit(grant)))
        }
      }
      await Promise.all(
        (await boxes.several(3)).flatMap(box => [task(box, true), task(box, false), task(box, false)]),
      )
      // A writer weighs as much as many readers: at no time was anybody in beside it.
      expect(readers.most).toBe(100)
      expect(writers.most).toBe(1)
      expect(rising(writers.tokens)).toBe(true)
    })

    test('many readers hold together', async boxes => {
      const all = await boxes.several(3)
      const held = []
      for (const box of [...all, ...all]) held.push(await box.readWriteLock('key').read.acquire())
      for (const grant of held) grant.assertHeld()
      expect(await all[0]!.readWriteLock('key').write.tryAcquire()).toBeUndefined()
      for (const grant of held) await grant.release()
      expect(await all[0]!.readWriteLock('key').write.tryAcquire()).toBeDefined()
    })

    test('sets of keys exclude each other where they overlap, and nowhere else', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('a', 'b').acquire()
      expect(held.keys).toEqual(['a', 'b'])
      expect(await other.mutex('b', 'c').tryAcquire()).toBeUndefined()
      expect(await other.mutex('a').tryAcquire()).toBeUndefined()
      const apart = await other.mutex('c', 'd').tryAcquire()
      expect(apart).toBeDefined()
      await held.release()
      expect(await one.mutex('b', 'c').tryAcquire()).toBeUndefined()
      expect(await one.mutex('a', 'b').tryAcquire()).toBeDefined()
    })

    test('kinds of lock under the same key exclude each other', async boxes => {
      const [one, other] = await boxes.pair()
      const kinds: ((box: Box) => Lock)[] = [
        box => box.mutex('key'),
        box => box.mutex('key', 'more'),
        box => box.semaphore('key', { permits: 3 }),
        box => box.readWriteLock('key').read,
        box => box.readWriteLock('key').write,
      ]
      for (const holding of kinds) {
        for (const asking of kinds) {
          if (holding === asking) continue
          const held = await holding(one).acquire()
          expect(await asking(other).tryAcquire()).toBeUndefined()
          expect(await asking(one).tryAcquire()).toBeUndefined()
          await held.release()
        }
      }
    })

    test('any claims can be combined', async boxes => {
      const [one, other] = await boxes.pair()
      const claims = [
        { key: 'b', mode: 'shared' },
        { key: 'a', mode: 'exclusive' },
        { key: 'c', mode: 'permits', permits: 2, max: 3 },
      ] as const
      const held = await one.lock(...claims).acquire()
      expect(held.keys).toEqual(['a', 'b', 'c'])
      expect(await other.mutex('a').tryAcquire()).toBeUndefined()
      expect(await other.semaphore('c', { permits: 3 }).tryAcquire({ permits: 2 })).toBeUndefined()
      expect(await other.semaphore('c', { permits: 3 }).tryAcquire()).toBeDefined()
      expect(await other.readWriteLock('b').write.tryAcquire()).toBeUndefined()
      expect(await other.readWriteLock('b').read.tryAcquire()).toBeDefined()
    })

    test('a busy lock is not given, by whichever verb', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      for (const box of [one, other]) {
        expect(await box.mutex('key').tryAcquire()).toBeUndefined()
        await expect(box.mutex('key').acquire({ wait: 0 })).rejects.toThrow(BusyError)
        await expect(box.mutex('key').run(() => 'inside', { wait: 0 })).rejects.toThrow(BusyError)
        expect(await soFar(box.mutex('key').acquire({ wait: 200 }))).toBe('pending')
      }
      held.assertHeld()
      await held.release()
    })

    test('a write grant that was downgraded lets readers in and no writer, from any box', async boxes => {
      const [one, other] = await boxes.pair()
      const written = await one.readWriteLock('key').write.acquire()
      await written.downgrade()
      const here = await one.readWriteLock('key').read.tryAcquire()
      const there = await other.readWriteLock('key').read.tryAcquire()
      expect([here, there]).not.toContain(undefined)
      const writers = [one, other].map(box => box.readWriteLock('key').write.acquire())
      await queued(other, 'key', 2)
      await written.release()
      await pause(20)
      here!.assertHeld()
      there!.assertHeld()
      for (const writer of writers) expect(await soFar(writer)).toBe('pending')
      await here!.release()
      await pause(20)
      for (const writer of writers) expect(await soFar(writer)).toBe('pending')
      await there!.release()
      await Promise.all(writers.map(async writer => (await writer).release()))
    })

    test('a writer who waits behind a downgraded grant of its own box does not come in beside a reader', async boxes => {
      const [one, other] = await boxes.pair()
      const written = await one.readWriteLock('key').write.acquire()
      const next = one.readWriteLock('key').write.acquire()
      await written.downgrade()
      const read = other.readWriteLock('key').read.acquire()
      await pause(20)
      await written.release()
      const first = await Promise.race([next.then(() => 'writer'), read.then(() => 'reader')])
      await pause(20)
      expect([await soFar(next), await soFar(read)].sort()).toEqual(['fulfilled', 'pending'])
      await (await (first === 'writer' ? next : read)).release()
      await (await (first === 'writer' ? read : next)).release()
    })

    test('a downgraded grant is not taken for a write grant by whoever writes next', async boxes => {
      const [one, other] = await boxes.pair()
      const written = await one.readWriteLock('key').write.acquire()
      await written.downgrade()
      await written.release()
      const next = await one.readWriteLock('key').write.acquire()
      expect(await other.readWriteLock('key').read.tryAcquire()).toBeUndefined()
      next.assertHeld()
      await next.release()
    })

    test('a renewal that is asked for before a downgrade is answered finds the grant', async boxes => {
      const [one, engine] = await boxes.meddled()
      const other = await boxes.open()
      const lease = 20_000
      const renewed: Promise<boolean>[] = []
      engine.meddle = (operation, carryOut) => {
        const answer = carryOut()
        if (operation.type === 'downgrade') {
          const { request, number } = operation
          const claims = request.claims.map(({ key }) => ({ key, mode: 'shared' as const }))
          renewed.push(engine.submit({ type: 'renew', request: { ...request, claims }, number, lease }))
        }
        return answer
      }
      const grant = await one.readWriteLock('key').write.acquire({ lease })
      await grant.downgrade()
      expect(await Promise.all(renewed)).toEqual([true])
      expect(await other.readWriteLock('key').write.tryAcquire()).toBeUndefined()
      grant.assertHeld()
      await grant.release()
    })

    test('a release that is asked for before a downgrade is answered gives the grant back', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.readWriteLock('key').write.acquire()
      const downgrading = Promise.all([grant.downgrade(), grant.downgrade()])
      await grant.release()
      await downgrading
      const next = await other.readWriteLock('key').write.tryAcquire()
      expect(next!.token).toBeGreaterThan(grant.token)
      await next!.release()
      await until('nothing is held', async () => (await locks(other)).length === 0)
    })

    test('a holder is out before the next one is in, when its lease ends', async boxes => {
      const [one, other] = await boxes.pair()
      const first = await one.mutex('key').acquire({ lease: 150, renew: false })
      const second = await other.mutex('key').acquire()
      expect(() => first.assertHeld()).toThrow(LostError)
      second.assertHeld()
      await expect(first.release()).rejects.toThrow(LostError)
      second.assertHeld()
      await second.release()
    })

    test('a lapsed holder is out before the next caller of its own box is in', async boxes => {
      const box = await boxes.open()
      const first = await box.mutex('key').acquire({ lease: 150, renew: false })
      const second = await box.mutex('key').acquire()
      expect(() => first.assertHeld()).toThrow(LostError)
      second.assertHeld()
      await expect(first.release()).rejects.toThrow(LostError)
      second.assertHeld()
      await second.release()
    })

    test('grants of a closed box are not held any more', async boxes => {
      const [one, other] = await boxes.pair()
      const grants = [
        await one.mutex('key').acquire(),
        await one.semaphore('permits', { permits: 1 }).acquire(),
        await one.readWriteLock('shared').read.acquire(),
      ]
      await one.close()
      for (const grant of grants) expect(() => grant.assertHeld()).toThrow(LostError)
      expect(await other.mutex('key', 'permits', 'shared').tryAcquire()).toBeDefined()
      for (const grant of grants) await expect(grant.release()).rejects.toThrow(LostError)
    })

    test('what was asked for while the box closed is not held afterwards', async boxes => {
      const other = await boxes.open()
      for (const verb of ['acquire', 'tryAcquire'] as const) {
        const box = await boxes.open()
        const asked = box
          .mutex('key')
          [verb]()
          .catch(() => undefined)
        await box.close()
        const outcome = await asked
        if (outcome) expect(() => outcome.assertHeld()).toThrow(LostError)
        await until('the key is free', async () => {
          const grant = await other.mutex('key').tryAcquire()
          await grant?.release()
          return grant !== undefined
        })
      }
    })
  })
}

async function both(one: Promise<void>, other: Promise<void>): Promise<void> {
  await Promise.all([one, other])
}
