import { describe } from './checks.js'
import { assert } from './assert.js'
import { type Box, ClosedError, LostError, TimedOutError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { locks, PASSED, pause, queued, timed, until } from './time.js'

/** P9: the locks of a crashed process become free, and a silent waiter never stalls the waiters behind it. */
export function deadHolders(fixture: EngineFixture): void {
  describe('P9 dead processes lose their locks', () => {
    const test = testOn(fixture)
    const processes = fixture.guarantees.scope !== 'thread'

    test('a box that closes frees what it held and leaves the queues', async boxes => {
      const [one, other, third] = await boxes.several(3)
      await one!.mutex('a', 'b').acquire()
      await other!.mutex('c').acquire()
      const waiting = assert.rejects(one!.mutex('c').acquire(), ClosedError)
      await queued(other!, 'c', 1)
      const behind = third!.mutex('b').acquire()
      await queued(third!, 'b', 1)
      await one!.close()
      await waiting
      await behind
      const left = await locks(other!)
      assert.deepEqual(left.map(({ key }) => key).sort(), ['b', 'c'])
      assert.deepEqual(
        left.flatMap(({ waiters }) => waiters),
        [],
      )
    })

    test("a silent holder's keys are free after its lease", async boxes => {
      const other = await boxes.open()
      const [silent, engine] = await boxes.withFaults()
      const grants = [
        await silent.mutex('key').acquire({ lease: 400 }),
        await silent.semaphore('permits', { max: 2 }).acquire({ lease: 400, permits: 2 }),
        await silent.readWriteLock('shared').read.acquire({ lease: 400 }),
      ]
      await engine.freeze()
      const took = await timed(async () => {
        const asked = [
          other.mutex('key').acquire(),
          other.semaphore('permits', { max: 2 }).acquire(),
          other.readWriteLock('shared').write.acquire(),
        ]
        for (const one of asked) await one
      })
      assert.below(took, 6000)
      for (const grant of grants) assert.throws(() => grant.assertHeld(), LostError)
    })

    test('a waiter notices an expired lease while an older holder still holds', async boxes => {
      const [one, other] = await boxes.pair()
      const [silent, engine] = await boxes.withFaults()
      const { permits } = { permits: 3 }
      const living = await one.semaphore('key', { max: permits }).acquire({ permits: 2 })
      await silent.semaphore('key', { max: permits }).acquire({ lease: 400 })
      await engine.freeze()
      const took = await timed(() => other.semaphore('key', { max: permits }).acquire())
      assert.below(took, 6000)
      living.assertHeld()
    })

    // In one thread a waiter can't be silent: it checks in within the call that wakes it.
    test.runIf(processes)(
      'a silent waiter delays the waiters behind it by one claim window at most',
      async boxes => {
        const [one, other] = await boxes.pair()
        const [silent, engine] = await boxes.withFaults()
        const locksOf = (box: Box) => [box.mutex('key'), box.semaphore('permits', { max: 1 })]
        const held = await Promise.all(locksOf(one).map(lock => lock.acquire()))
        for (const lock of locksOf(silent)) lock.acquire().catch(() => undefined)
        for (const key of ['key', 'permits']) await queued(one, key, 1)
        const asked = locksOf(other).map(lock => lock.acquire())
        for (const key of ['key', 'permits']) await queued(one, key, 2)
        await engine.freeze()
        const took = await timed(async () => {
          for (const grant of held) await grant.release()
          await Promise.all(asked)
        })
        assert.below(took, PASSED)
      },
    )

    test('a waiter that receives no hints is served by its own check-in, and so are the waiters behind it', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire({ lease: 3000 })
      const [deaf, engine] = await boxes.withFaults()
      engine.delivers = () => false
      const served: string[] = []
      const first = deaf.mutex('key').run(() => void served.push('deaf'))
      await queued(one, 'key', 1)
      const second = other.mutex('key').run(() => void served.push('behind'))
      await queued(one, 'key', 2)
      await pause(20)
      await held.release()
      const took = await timed(() => Promise.all([first, second]))
      assert.below(took, PASSED)
      assert.deepEqual(served.sort(), ['behind', 'deaf'])
    })

    test('a waiter that was cut off for a while does not block the key afterwards', async boxes => {
      const one = await boxes.open()
      const held = await one.mutex('key').acquire()
      const [away, engine] = await boxes.withFaults()
      const asked = away
        .mutex('key')
        .acquire({ lease: 200 })
        .catch(() => undefined)
      await queued(one, 'key', 1)
      const carryOn = engine.intercept
      engine.intercept = () => Promise.reject(new Error('the line is cut'))
      await pause(150)
      engine.intercept = carryOn
      await held.release()
      const grant = await asked
      // It was granted or rejected; in both cases it does not block the key.
      await grant?.release()
      const next = await one.mutex('key').acquire({ wait: 5000 })
      next.assertHeld()
    })

    test('an operator can revoke a session without waiting for its lease', async boxes => {
      const [one, other] = await boxes.pair()
      const [dead, engine] = await boxes.withFaults()
      await dead.mutex('a', 'b').acquire()
      await dead.semaphore('c', { max: 1 }).acquire()
      const held = await one.mutex('d').acquire()
      dead
        .mutex('d')
        .acquire()
        .catch(() => undefined)
      await queued(one, 'd', 1)
      // Otherwise work that the engine does after a grant could come after the revocation.
      await boxes.place.settled?.()
      await engine.freeze()
      const waiting = other.mutex('b').acquire()
      await queued(one, 'b', 1)
      assert.equal(await one.revoke(dead.session), 3)
      assert.below(await timed(() => waiting), 3500)
      assert.deepEqual((await locks(one)).map(({ key }) => key).sort(), ['b', 'd'])
      assert.equal(await one.revoke(dead.session), 0)
      held.assertHeld()
    })

    test('a live session that is revoked loses its grants and keeps its waiters', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('a').acquire()
      const held = await other.mutex('b').acquire()
      const waiting = one.mutex('b').acquire()
      await queued(other, 'b', 1)
      assert.equal(await other.revoke(one.session), 2)
      await until('it knows', () => grant.signal.aborted)
      await assert.rejects(grant.release(), LostError)
      held.assertHeld()
      await held.release()
      await (await waiting).release()
    })

    test('revoking an unknown session or one without grants does nothing', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('key').acquire()
      assert.equal(await other.revoke('unknown session'), 0)
      assert.equal(await other.revoke(other.session), 0)
      grant.assertHeld()
    })

    test.runIf(processes)(
      'a killed process frees its locks and leaves the queues within the time that the engine promises',
      async boxes => {
        const [one, other] = await boxes.pair()
        const held = await one.mutex('waited').acquire()
        const atOnce = fixture.guarantees.deadHolder === 'at once'
        const child = boxes.program('holder', atOnce ? '30s' : '3s')
        await child.printed('holding')
        await queued(one, 'waited', 1)
        const freed = other.mutex('held').acquire()
        const behind = other.mutex('waited').acquire()
        await queued(one, 'waited', 2)
        const killed = performance.now()
        child.kill('SIGKILL')
        await freed
        if (atOnce) assert.below(performance.now() - killed, 5000)
        await held.release()
        await behind
      },
    )

    test.runIf(processes)('a stopped process keeps its lock until its lease is over', async boxes => {
      const one = await boxes.open()
      await one.mutex('waited').acquire()
      const child = boxes.program('holder', '30s')
      await child.printed('holding')
      await queued(one, 'waited', 1)
      // Some engines would wait for the transaction of a stopped process, so it stops when it has none.
      await pause(300)
      child.kill('SIGSTOP')
      await assert.rejects(one.mutex('held').acquire({ wait: 1000 }), TimedOutError)
      child.kill('SIGKILL')
    })
  })
}
