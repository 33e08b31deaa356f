import { describe } from './checks.js'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { pause } from './time.js'

/** The lease of a holder that falls silent: milliseconds, longer than a loaded machine stalls. */
const LEASE = 1000

/** A task that is done once in a fleet. */
export function once(fixture: EngineFixture): void {
  describe('a task that is done once for a slot', () => {
    const test = testOn(fixture)

    test('is done by one of the boxes that call it at the same time', async boxes => {
      const all = await boxes.several(3)
      let done = 0
      const ends = await Promise.all(
        [...all, ...all].map(box =>
          box.oncePer('nightly', 'monday', async grant => {
            assert.deepEqual(grant.keys, ['nightly'])
            await pause(5)
            return ++done
          }),
        ),
      )
      assert.equal(done, 1)
      assert.deepEqual(
        ends.filter(({ ran }) => ran),
        [{ ran: true, slot: 'monday', result: 1 }],
      )
      assert.deepEqual(
        ends.filter(({ ran }) => !ran),
        Array.from({ length: 5 }, () => ({ ran: false, slot: 'monday' })),
      )
      assert.has(await all[0]!.oncePer('nightly', 'tuesday', () => ++done), { ran: true, result: 2 })
      assert.has(await all[1]!.oncePer('weekly', 'tuesday', () => ++done), { ran: true, result: 3 })
    })

    test('is done by another box after it failed', async boxes => {
      const [one, other] = await boxes.pair()
      const failing = one.oncePer('nightly', 'monday', () => Promise.reject(new Error('of the task')))
      await assert.rejects(failing, /of the task/)
      assert.has(await other.oncePer('nightly', 'monday', () => 'done'), { ran: true, result: 'done' })
    })

    test('is done by another box when its process falls silent in the middle', async boxes => {
      const other = await boxes.open()
      const [silent, engine] = await boxes.meddled()
      let began = (): void => undefined
      const middle = new Promise<void>(resolve => (began = resolve))
      const task = async (): Promise<void> => {
        began()
        await new Promise(() => undefined)
      }
      void silent.oncePer('nightly', 'monday', task, { lease: LEASE }).catch(() => undefined)
      await middle
      await engine.freeze()
      assert.has(await other.oncePer('nightly', 'monday', () => 'done'), { ran: true, result: 'done' })
    })
  })
}
