import { describe } from './checks.js'
import { assert } from './assert.js'
import { IndeterminateError } from 'signalbox'
import { testOn } from './boxes.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { LAPSING, locks, pause, timed, until } from './time.js'

/** P12: the library keeps no finished process alive, causes no unhandled rejection, and leaves nothing behind. */
export function quiet(fixture: EngineFixture): void {
  describe('P12 no leaks, no background errors', () => {
    const test = testOn(fixture)

    const scenes = [
      ['idle', 'an open box'],
      ['holding', 'grants that were never released'],
      ['given-up', 'waits that timed out or were aborted'],
      ['closed', 'a box that was closed'],
      ['closed-busy', 'a box that is closed in the middle of many calls'],
      ['closed-early', 'a box that is closed while its callers begin to wait'],
    ] as const
    const scenesWithValues = [
      ['leading', 'a term that never ended'],
      ['watching', 'a watch without a reader'],
      ['transactions', 'transactions that are done'],
      ['drained', 'a schedule in a box that was drained'],
    ] as const
    for (const [scene, what] of keepsValues(fixture) ? [...scenes, ...scenesWithValues] : scenes) {
      test(`a process with ${what} exits`, async boxes => {
        const child = boxes.program('quiet', scene)
        await child.printed('done')
        const took = await timed(() => child.end())
        assert.deepEqual(await child.end(), { status: 0, stdout: 'done\n', stderr: '' })
        assert.below(took, 3000)
      })
    }

    test('a waiter keeps its process alive', async boxes => {
      const child = boxes.program('quiet', 'waiting')
      assert.deepEqual(await child.end(), { status: 0, stdout: 'done\ngranted\n', stderr: '' })
    })

    test('a waiter keeps its process alive until its signal aborts', async boxes => {
      const child = boxes.program('quiet', 'waiting-with-signal')
      assert.deepEqual(await child.end(), { status: 0, stdout: 'done\nABORTED\n', stderr: '' })
    })

    test.runIf(keepsValues(fixture))(
      'a reader that waits for the next change of a watch keeps its process alive',
      async boxes => {
        const child = boxes.program('quiet', 'awaiting-change')
        assert.deepEqual(await child.end(), { status: 0, stdout: 'done\nchanged\n', stderr: '' })
      },
    )

    test.runIf(fixture.network !== 'none')(
      'a caller that retries at once does not block the event loop while the engine is out of reach',
      async boxes => {
        const [box, network] = await boxes.overNetwork()
        await box.mutex('key').run(() => undefined)
        network.cut()
        let keys = 0
        const fresh = (): string => `key ${++keys}`
        const tries = [
          () => box.mutex('key').run(() => undefined),
          () => box.mutex(fresh()).run(() => undefined),
          () => box.mutex(fresh()).tryAcquire(),
          ...(keepsValues(fixture) ? [() => box.store('s').get('k')] : []),
          ...(hasLimits(fixture) ? [() => box.limiter(fresh(), { limit: 1000, per: '1m' }).acquire()] : []),
        ]
        const fails = async (attempt: () => Promise<unknown>): Promise<boolean> =>
          attempt().then(
            () => false,
            () => true,
          )
        // Some engines wait for a server instead of failing.
        await until('it is out of reach', async () =>
          Promise.race([fails(tries[0]!), pause(50).then(() => true)]),
        )
        for (const attempt of tries) {
          const turned = new Promise<'turned'>(resolve => setImmediate(resolve, 'turned'))
          let left = 1000
          const goesOn = async (): Promise<boolean> =>
            (await Promise.race([turned, fails(attempt)])) !== 'turned'
          while ((await goesOn()) && left > 0) left--
          assert.notEqual(left, 0, `the event loop has no turn during ${String(attempt)}`)
        }
        network.restore()
      },
    )

    test('an engine that fails in the background causes no unhandled rejection', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const held = await other.mutex('key').acquire()
      const grant = await box.mutex('mine').acquire({ lease: LAPSING })
      engine.intercept = () => Promise.reject(new IndeterminateError('the line is cut'))
      await assert.rejects(box.mutex('key').acquire({ wait: 20 }))
      await pause(LAPSING + 200)
      await assert.rejects(grant.release())
      await held.release()
      engine.restore()
    })

    test('a lost grant that the caller ignores causes no unhandled rejection', async boxes => {
      const box = await boxes.open()
      await box.mutex('key').acquire({ lease: LAPSING, renew: false })
      await pause(LAPSING + 40)
    })

    test('released locks leave nothing behind', async boxes => {
      const box = await boxes.open()
      const use = async (index: number): Promise<void> => {
        await box.mutex(`key ${index}`).run(() => undefined)
        await (await box.semaphore(`permits ${index}`, { max: 2 }).tryAcquire())!.release()
      }
      // All at once, because one after another takes long on an engine with a slow disk.
      await Promise.all(Array.from({ length: 300 }, (_, index) => use(index)))
      assert.deepEqual(await locks(box), [])
    })
  })
}
