import { describe } from './checks.js'
import { assert } from './assert.js'
import { IndeterminateError } from '../errors.js'
import { testOn } from './boxes.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { locks, pause, until } from './time.js'

/** P12: nothing of it keeps a finished process alive, nothing escapes, nothing grows. */
export function quiet(fixture: EngineFixture): void {
  describe('P12 quiet', () => {
    const test = testOn(fixture)

    const scenes = [
      ['idle', 'an open box'],
      ['holding', 'grants that were never released'],
      ['given-up', 'waits that timed out or were aborted'],
      ['closed', 'a box that was closed'],
    ] as const
    const scenesWithValues = [
      ['leading', 'a lead that was never resigned'],
      ['watching', 'a watch that nobody reads'],
      ['transactions', 'transactions that are done'],
    ] as const
    for (const [scene, what] of keepsValues(fixture) ? [...scenes, ...scenesWithValues] : scenes) {
      test(`${what} keeps no process alive`, async boxes => {
        const started = performance.now()
        const child = boxes.program('quiet', scene)
        const { status, stdout, stderr } = await child.end()
        assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: 'done\n', stderr: '' })
        assert.below(performance.now() - started, 10_000)
      })
    }

    test('a box that is closed while its calls begin to wait keeps no process alive', async boxes => {
      const child = boxes.program('quiet', 'closed-early')
      await child.printed('done')
      const done = performance.now()
      assert.deepEqual(await child.end(), { status: 0, stdout: 'done\n', stderr: '' })
      assert.below(performance.now() - done, 3000)
    })

    test('a process stays alive for those who wait', async boxes => {
      const child = boxes.program('quiet', 'waiting')
      assert.deepEqual(await child.end(), { status: 0, stdout: 'done\ngranted\n', stderr: '' })
    })

    test('a process stays alive for a waiter whose signal aborts', async boxes => {
      const child = boxes.program('quiet', 'waiting-with-signal')
      assert.deepEqual(await child.end(), { status: 0, stdout: 'done\nABORTED\n', stderr: '' })
    })

    test.runIf(keepsValues(fixture))('a process stays alive for those who wait for a change', async boxes => {
      const child = boxes.program('quiet', 'awaiting-change')
      assert.deepEqual(await child.end(), { status: 0, stdout: 'done\nchanged\n', stderr: '' })
    })

    test.runIf(fixture.cuttable !== undefined)(
      'a caller that tries again at once leaves the event loop its turns while the engine is out of reach',
      async boxes => {
        const network = await fixture.cuttable!(boxes.place)
        const box = await boxes.join(network.engine)
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
        // Some engines wait for a server instead.
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
        network.mend()
      },
    )

    test('an engine that fails in the background is nobody’s unhandled rejection', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.meddled()
      const held = await other.mutex('key').acquire()
      const grant = await box.mutex('mine').acquire({ lease: 300 })
      engine.meddle = () => Promise.reject(new IndeterminateError('the line is cut'))
      await assert.rejects(box.mutex('key').acquire({ wait: 20 }))
      await pause(500)
      await assert.rejects(grant.release())
      await held.release()
      engine.meddle = (_, carryOut) => carryOut()
    })

    test('a grant whose loss nobody looks at stays quiet', async boxes => {
      const box = await boxes.open()
      await box.mutex('key').acquire({ lease: 20, renew: false })
      await pause(60)
    })

    test('keys that were used leave nothing behind', async boxes => {
      const box = await boxes.open()
      const use = async (index: number): Promise<void> => {
        await box.mutex(`key ${index}`).run(() => undefined)
        await (await box.semaphore(`permits ${index}`, { permits: 2 }).tryAcquire())!.release()
      }
      // All at once: one after the other, an engine that writes each to a slow disk takes long.
      await Promise.all(Array.from({ length: 300 }, (_, index) => use(index)))
      assert.deepEqual(await locks(box), [])
    })

    test('grants that were lost and never released leave nothing behind', async boxes => {
      const [box, other] = await boxes.pair()
      for (let index = 0; index < 20; index++) {
        await box.mutex(`key ${index}`).acquire({ lease: 30, renew: false })
      }
      await until('all are gone', async () => (await locks(other)).length === 0)
    })
  })
}
