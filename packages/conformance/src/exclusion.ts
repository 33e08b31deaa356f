import { describe } from './checks.js'
import { assert } from './assert.js'
import { type Box, BusyError, type Claim, InvalidArgumentError, type Lock, LostError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'
import { rising, Section } from './section.js'
import { LAPSING, locks, nothingHeld, pause, queued, soFar, until } from './time.js'

/** P1: while `assertHeld()` passes, no other caller of the same engine holds a conflicting grant. */
export function exclusion(fixture: EngineFixture): void {
  describe('P1 mutual exclusion', () => {
    const test = testOn(fixture)

    test('a mutex has one holder at a time, and each later holder has a greater token', async boxes => {
      const section = new Section()
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 6; round++) {
          await box.mutex('key').run(grant => section.visit(grant))
        }
      }
      await Promise.all((await boxes.several(3)).flatMap(box => [task(box), task(box), task(box)]))
      assert.equal(section.most, 1)
      assert.hasLength(section.tokens, 54)
      assert.equal(rising(section.tokens), true)
      assert.deepEqual(await locks(await boxes.open()), [])
    })

    test('claims with similar texts are different claims', async boxes => {
      const [one, other] = await boxes.pair()
      const permits = (max: number): Claim => ({ key: 'a', mode: 'permits', permits: 1, max })
      const exclusive = (key: string): Claim => ({ key, mode: 'exclusive' })
      const first = await one.lock(permits(2), exclusive('bbx7:ccccccc')).acquire()
      const second = one.lock(permits(21), exclusive('bb'), exclusive('ccccccc')).acquire({ wait: '10s' })
      // The number of permits differs while the key is in use.
      await assert.rejects(second, InvalidArgumentError)
      await first.release()
      const third = await one.lock(exclusive('bb'), exclusive('ccccccc')).acquire()
      assert.equal(await other.mutex('bb').tryAcquire(), undefined)
      await third.release()
    })

    test('an election and a limiter have locks that no key can take', async boxes => {
      const box = await boxes.open()
      for (const key of ['election:e', 'limiter:1:a']) {
        assert.throws(() => box.mutex('a', key), InvalidArgumentError)
        assert.throws(() => box.semaphore(key, { max: 1 }), InvalidArgumentError)
        assert.throws(() => box.readWriteLock(key), InvalidArgumentError)
        assert.throws(() => box.lock({ key, mode: 'exclusive' }), InvalidArgumentError)
        assert.throws(() => box.store(key), InvalidArgumentError)
      }
      await using _ = await box.lock({ key: 'election:e', mode: 'shared' }).acquire()
      assert.equal(await box.mutex('election').isLocked(), false)
    })

    test('a semaphore has several holders, and never gives more permits than it has', async boxes => {
      const random = new Random(11)
      const section = new Section()
      const task = async (box: Box): Promise<void> => {
        for (let round = 0; round < 6; round++) {
          const permits = 1 + random.below(3)
          await box.semaphore('key', { max: 4 }).run(grant => section.visit(grant, permits), { permits })
        }
      }
      await Promise.all((await boxes.several(3)).flatMap(box => [task(box), task(box), task(box)]))
      assert.above(section.most, 1)
      assert.atMost(section.most, 4)
      assert.hasLength(section.tokens, 54)
    })

    test('all permits of a semaphore can be held at once, by one or several boxes', async boxes => {
      const [one, other] = await boxes.pair()
      const first = one.semaphore('key', { max: 5 })
      const second = other.semaphore('key', { max: 5 })
      const grants = [
        await first.acquire(),
        await first.acquire({ permits: 2 }),
        await second.acquire(),
        await second.acquire({ permits: 1 }),
      ]
      assert.equal(await first.tryAcquire(), undefined)
      assert.equal(await second.tryAcquire(), undefined)
      await grants[1]!.release()
      await boxes.place.settled?.()
      const both = await second.tryAcquire({ permits: 2 })
      assert.notEqual(both, undefined)
      assert.equal(await first.tryAcquire(), undefined)
      for (const grant of [...grants, both!]) await grant.release()
      await boxes.place.settled?.()
      assert.notEqual(await second.tryAcquire({ permits: 5 }), undefined)
    })

    test('readers hold together, a writer alone', async boxes => {
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
      // A writer weighs as much as 100 readers, so a reader at the same time would show.
      assert.equal(readers.most, 100)
      assert.equal(writers.most, 1)
      assert.equal(rising(writers.tokens), true)
    })

    test('a writer gets in after all readers have released', async boxes => {
      const all = await boxes.several(3)
      const held = []
      for (const box of [...all, ...all]) held.push(await box.readWriteLock('key').read.acquire())
      for (const grant of held) grant.assertHeld()
      assert.equal(await all[0]!.readWriteLock('key').write.tryAcquire(), undefined)
      for (const grant of held) await grant.release()
      assert.notEqual(await all[0]!.readWriteLock('key').write.tryAcquire(), undefined)
    })

    test('sets of keys exclude each other only where they overlap', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('a', 'b').acquire()
      assert.deepEqual(held.keys, ['a', 'b'])
      assert.equal(await other.mutex('b', 'c').tryAcquire(), undefined)
      assert.equal(await other.mutex('a').tryAcquire(), undefined)
      const apart = await other.mutex('c', 'd').tryAcquire()
      assert.notEqual(apart, undefined)
      await held.release()
      assert.equal(await one.mutex('b', 'c').tryAcquire(), undefined)
      assert.notEqual(await one.mutex('a', 'b').tryAcquire(), undefined)
    })

    test('kinds of lock under the same key exclude each other', async boxes => {
      const [one, other] = await boxes.pair()
      const kinds: ((box: Box) => Lock)[] = [
        box => box.mutex('key'),
        box => box.mutex('key', 'more'),
        box => box.semaphore('key', { max: 3 }),
        box => box.readWriteLock('key').read,
        box => box.readWriteLock('key').write,
      ]
      for (const holding of kinds) {
        for (const asking of kinds) {
          if (holding === asking) continue
          const held = await holding(one).acquire()
          assert.equal(await asking(other).tryAcquire(), undefined)
          assert.equal(await asking(one).tryAcquire(), undefined)
          await held.release()
        }
      }
    })

    test('one lock can combine claims of all modes', async boxes => {
      const [one, other] = await boxes.pair()
      const claims = [
        { key: 'b', mode: 'shared' },
        { key: 'a', mode: 'exclusive' },
        { key: 'c', mode: 'permits', permits: 2, max: 3 },
      ] as const
      const held = await one.lock(...claims).acquire()
      assert.deepEqual(held.keys, ['a', 'b', 'c'])
      assert.equal(await other.mutex('a').tryAcquire(), undefined)
      assert.equal(await other.semaphore('c', { max: 3 }).tryAcquire({ permits: 2 }), undefined)
      assert.notEqual(await other.semaphore('c', { max: 3 }).tryAcquire(), undefined)
      assert.equal(await other.readWriteLock('b').write.tryAcquire(), undefined)
      assert.notEqual(await other.readWriteLock('b').read.tryAcquire(), undefined)
    })

    test('a busy lock is not granted by any verb', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      for (const box of [one, other]) {
        assert.equal(await box.mutex('key').tryAcquire(), undefined)
        await assert.rejects(box.mutex('key').acquire({ wait: 0 }), BusyError)
        await assert.rejects(
          box.mutex('key').run(() => 'inside', { wait: 0 }),
          BusyError,
        )
        assert.equal(await soFar(box.mutex('key').acquire({ wait: 5000 })), 'pending')
      }
      held.assertHeld()
      await held.release()
    })

    test('a downgraded write grant admits readers and no writer, from any box', async boxes => {
      const [one, other] = await boxes.pair()
      const written = await one.readWriteLock('key').write.acquire()
      await written.downgrade()
      const here = await one.readWriteLock('key').read.tryAcquire()
      const there = await other.readWriteLock('key').read.tryAcquire()
      assert.excludes([here, there], undefined)
      const writers = [one, other].map(box => box.readWriteLock('key').write.acquire())
      await queued(other, 'key', 2)
      await written.release()
      await pause(20)
      here!.assertHeld()
      there!.assertHeld()
      for (const writer of writers) assert.equal(await soFar(writer), 'pending')
      await here!.release()
      await pause(20)
      for (const writer of writers) assert.equal(await soFar(writer), 'pending')
      await there!.release()
      await Promise.all(writers.map(async writer => (await writer).release()))
    })

    test('a writer behind a downgraded grant of its own box does not get in with a reader', async boxes => {
      const [one, other] = await boxes.pair()
      const written = await one.readWriteLock('key').write.acquire()
      const next = one.readWriteLock('key').write.acquire()
      await written.downgrade()
      const read = other.readWriteLock('key').read.acquire()
      await pause(20)
      await written.release()
      const first = await Promise.race([next.then(() => 'writer'), read.then(() => 'reader')])
      await pause(20)
      assert.deepEqual([await soFar(next), await soFar(read)].sort(), ['fulfilled', 'pending'])
      await (await (first === 'writer' ? next : read)).release()
      await (await (first === 'writer' ? read : next)).release()
    })

    test('the next writer of the same box gets a write grant of its own after a downgrade', async boxes => {
      const [one, other] = await boxes.pair()
      const written = await one.readWriteLock('key').write.acquire()
      await written.downgrade()
      await written.release()
      const next = await one.readWriteLock('key').write.acquire()
      assert.equal(await other.readWriteLock('key').read.tryAcquire(), undefined)
      next.assertHeld()
      await next.release()
    })

    test('a renewal that is sent before a downgrade is answered finds the grant', async boxes => {
      const [one, engine] = await boxes.withFaults()
      const other = await boxes.open()
      const lease = 20_000
      const renewed: Promise<boolean>[] = []
      engine.intercept = (operation, execute) => {
        const answer = execute()
        if (operation.type === 'downgrade') {
          const { request, number } = operation
          const claims = request.claims.map(({ key }) => ({ key, mode: 'shared' as const }))
          renewed.push(engine.submit({ type: 'renew', request: { ...request, claims }, number, lease }))
        }
        return answer
      }
      const grant = await one.readWriteLock('key').write.acquire({ lease })
      await grant.downgrade()
      assert.deepEqual(await Promise.all(renewed), [true])
      assert.equal(await other.readWriteLock('key').write.tryAcquire(), undefined)
      grant.assertHeld()
      await grant.release()
    })

    test('a release that is called before a downgrade is answered releases the grant', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.readWriteLock('key').write.acquire()
      const downgrading = Promise.all([grant.downgrade(), grant.downgrade()])
      await grant.release()
      await downgrading
      const next = await other.readWriteLock('key').write.tryAcquire()
      assert.above(next!.token, grant.token)
      await next!.release()
      await nothingHeld(other)
    })

    for (const [holder, from] of [
      ['a holder', 'another box'],
      ['a holder', 'its own box'],
      ['a holder that had to wait', 'another box'],
    ] as const) {
      test(`${holder} has lost its grant before a caller of ${from} gets one`, async boxes => {
        const [one, other] = await boxes.pair()
        const before = holder === 'a holder' ? undefined : await other.mutex('key').acquire()
        const asked = one.mutex('key').acquire({ lease: LAPSING, renew: false })
        if (before) {
          await queued(other, 'key', 1)
          await pause(LAPSING / 2)
          await before.release()
        }
        const first = await asked
        const second = await (from === 'its own box' ? one : other).mutex('key').acquire()
        assert.throws(() => first.assertHeld(), LostError)
        second.assertHeld()
        await assert.rejects(first.release(), LostError)
        second.assertHeld()
        await second.release()
      })
    }

    test('grants of a closed box are lost', async boxes => {
      const [one, other] = await boxes.pair()
      const grants = [
        await one.mutex('key').acquire(),
        await one.semaphore('permits', { max: 1 }).acquire(),
        await one.readWriteLock('shared').read.acquire(),
      ]
      await one.close()
      for (const grant of grants) assert.throws(() => grant.assertHeld(), LostError)
      assert.notEqual(await other.mutex('key', 'permits', 'shared').tryAcquire(), undefined)
      for (const grant of grants) await assert.rejects(grant.release(), LostError)
    })

    test('a grant that was requested while the box closed is not held afterwards', async boxes => {
      const other = await boxes.open()
      for (const verb of ['acquire', 'tryAcquire'] as const) {
        const box = await boxes.open()
        const asked = box
          .mutex('key')
          [verb]()
          .catch(() => undefined)
        await box.close()
        const outcome = await asked
        if (outcome) assert.throws(() => outcome.assertHeld(), LostError)
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
