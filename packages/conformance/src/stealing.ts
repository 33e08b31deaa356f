import { InvalidArgumentError, LostError, type Box } from 'signalbox'
import { assert } from './assert.js'
import { testOn, type Boxes } from './boxes.js'
import { describe } from './checks.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { NOTIFIED_BY_RENEWAL, locks, nothingHeld, queued, until } from './time.js'

/** Locks that are taken from their holders. Part of the checks of a box. */
export function stealing(fixture: EngineFixture): void {
  const onAll = testOn(fixture)

  /** Adds a check that gets two boxes, if the engine can steal. */
  const test = (name: string, body: (one: Box, other: Box, boxes: Boxes) => Promise<void>): void =>
    onAll(name, async boxes => {
      const engine = await boxes.place.engine()
      const box = await boxes.join(engine)
      if (engine.canSteal) await body(await boxes.open(), box, boxes)
    })

  describe('stealing', () => {
    onAll('it needs an engine that has it, and exclusive claims', async boxes => {
      const engine = await boxes.place.engine()
      const box = await boxes.join(engine)
      if (engine.canSteal) await (await box.mutex('key').tryAcquire({ steal: true }))!.release()
      else await assert.rejects(box.mutex('key').acquire({ steal: true }), InvalidArgumentError)
      await assert.rejects(box.readWriteLock('key').read.acquire({ steal: true }), InvalidArgumentError)
      await assert.rejects(box.semaphore('key', { max: 2 }).acquire({ steal: true }), InvalidArgumentError)
      assert.deepEqual(await locks(box), [])
    })

    test('the holder loses the key, and those that wait keep their order', async (one, other) => {
      const held = await one.mutex('key').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const served: string[] = []
      const first = one.mutex('key').run(() => void served.push('first'), { ownRequest: true })
      await queued(one, 'key', 1)
      const second = other.mutex('key').run(() => void served.push('second'), { ownRequest: true })
      await queued(one, 'key', 2)
      const stolen = await other.mutex('key').acquire({ steal: true })
      assert.above(stolen.token, held.token)
      await until('the holder knows', () => held.signal.aborted)
      await assert.rejects(held.release(), LostError)
      stolen.assertHeld()
      assert.deepEqual(served, [])
      assert.equal(await one.mutex('key').tryAcquire({ ownRequest: true }), undefined)
      await stolen.release()
      await Promise.all([first, second])
      assert.deepEqual(served, ['first', 'second'])
      await nothingHeld(one)
    })

    test('all that share a key lose it', async (one, other) => {
      const { read } = one.readWriteLock('key')
      const options = { lease: NOTIFIED_BY_RENEWAL, ownRequest: true }
      const readers = [await read.acquire(options), await read.acquire(options)]
      const permit = await one.semaphore('permits', { max: 3 }).acquire({ lease: NOTIFIED_BY_RENEWAL })
      await using stolen = await other.mutex('key', 'permits').acquire({ steal: true })
      for (const grant of [...readers, permit]) await until('it is lost', () => grant.signal.aborted)
      stolen.assertHeld()
      assert.deepEqual(
        (await locks(one)).map(({ key, holders }) => [key, holders.map(({ token }) => token)]),
        [
          ['key', [stolen.token]],
          ['permits', [stolen.token]],
        ],
      )
    })

    test('a grant of several keys loses all of them', async (one, other) => {
      const held = await one.mutex('a', 'b', 'c').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const waiting = other.mutex('c').acquire()
      await queued(other, 'c', 1)
      const stolen = await other.mutex('b').acquire({ steal: true })
      await (await waiting).release()
      await until('it is lost', () => held.signal.aborted)
      await (await other.mutex('a').acquire()).release()
      stolen.assertHeld()
    })

    test('the last of several steals has the key', async (one, other) => {
      const all = Array.from({ length: 8 }, (_, index) =>
        (index % 2 ? one : other).mutex('key').acquire({ steal: true, lease: NOTIFIED_BY_RENEWAL }),
      )
      const grants = await Promise.all(all)
      const last = grants.reduce((latest, grant) => (grant.token > latest.token ? grant : latest))
      for (const grant of grants) if (grant !== last) await until('it is lost', () => grant.signal.aborted)
      last.assertHeld()
      assert.equal(await one.mutex('key').tryAcquire({ ownRequest: true }), undefined)
      await last.release()
    })

    test('a hand-over at the same time leaves one holder', async (one, other) => {
      for (let round = 0; round < 20; round++) {
        const held = await one.mutex('key').acquire()
        const next = one.mutex('key').acquire({ ownRequest: true, lease: NOTIFIED_BY_RENEWAL })
        await queued(one, 'key', 1)
        const [stolen] = await Promise.all([
          other.mutex('key').acquire({ steal: true }),
          held.release().catch(() => undefined),
        ])
        assert.hasLength((await locks(one))[0]!.holders, 1)
        await stolen.release().catch(() => undefined)
        await (await next).release().catch(() => undefined)
        await nothingHeld(one)
      }
    })

    if (!keepsValues(fixture) || fixture.hasRecords) return
    test('a transaction whose key was stolen writes nothing', async (one, other) => {
      const store = one.store('s')
      const writing = store.transaction(['key'], async transaction => {
        transaction.put('key', 'late')
        await (await other.mutex('s/key').acquire({ steal: true })).release()
      })
      await assert.rejects(writing, LostError)
      assert.equal(await store.get('key'), undefined)
    })
  })
}
