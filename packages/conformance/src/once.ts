import type { Grant, Slot } from 'signalbox'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { pause, until } from './time.js'
import { shiftWallClock } from './wall-clock.js'

/** The lease of a holder that falls silent: milliseconds, longer than a loaded machine stalls. */
const LEASE = 1000

/** The period of a schedule: milliseconds. */
const PERIOD = 200

const DAY = 86_400_000

function today(): number {
  return Math.floor(Date.now() / DAY) * DAY
}

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
        [{ ran: true, slot: { name: 'monday' }, result: 1 }],
      )
      assert.deepEqual(
        ends.filter(({ ran }) => !ran),
        Array.from({ length: 5 }, () => ({ ran: false, slot: { name: 'monday' } })),
      )
      assert.has(await all[0]!.oncePer('nightly', 'tuesday', () => ++done), { ran: true, result: 2 })
      assert.has(await all[1]!.oncePer('weekly', 'tuesday', () => ++done), { ran: true, result: 3 })
    })

    test('is done once for each slot of a schedule that several boxes keep', async boxes => {
      const slots: number[] = []
      const errors: unknown[] = []
      let running = 0
      let most = 0
      const task = async (grant: Grant, slot: Slot): Promise<void> => {
        most = Math.max(most, ++running)
        slots.push(slot.at.getTime())
        await pause(PERIOD / 4)
        grant.assertHeld()
        running--
      }
      const schedules = (await boxes.several(3)).map(box =>
        box.schedule('sync', { every: PERIOD }, task, { onError: error => errors.push(error) }),
      )
      await until('five slots are done', () => slots.length >= 5)
      await Promise.all(schedules.map(schedule => schedule.stop()))
      assert.deepEqual(errors, [])
      assert.deepEqual([most, running], [1, 0])
      // In order, each once, each at a multiple of the period.
      const expected = [...new Set(slots)].sort((a, b) => a - b).filter(slot => slot % PERIOD === 0)
      assert.deepEqual(slots, expected)
    })

    test('is not done again for an earlier name', async boxes => {
      const [one, other] = await boxes.pair()
      let done = 0
      for (const release of ['release 7', 'release 8'])
        assert.has(await one.oncePer('deploy', release, () => ++done), { ran: true })
      assert.deepEqual(await other.oncePer('deploy', 'release 7', () => ++done), {
        ran: false,
        slot: { name: 'release 7' },
      })
      assert.equal(done, 2)
    })

    test.alone('is done for the slot of today although one wall clock is 400 days ahead', async boxes => {
      const [ahead, engine] = await boxes.withFaults()
      const right = await boxes.open()
      const slots: number[] = []
      const daily = { every: '1d' } as const
      const task = (_: unknown, slot: Slot): void => void slots.push(slot.at.getTime())
      try {
        shiftWallClock(400 * DAY)
        await ahead.oncePer('nightly', daily, task)
      } finally {
        shiftWallClock(0)
      }
      const before = today()
      const { slot } = await right.oncePer('nightly', daily, task)
      // At midnight the day may change in between.
      assert.equal([before, today()].includes(slot.at.getTime()), true)
      assert.hasLength(
        slots.filter(each => each === slot.at.getTime()),
        1,
      )
      // Without a clock of the engine, the other process had no means to know the day.
      if (engine.wallClock && before === today()) assert.hasLength(slots, 1)
    })

    test('is done by another box after it failed', async boxes => {
      const [one, other] = await boxes.pair()
      const failing = one.oncePer('nightly', 'monday', () => Promise.reject(new Error('of the task')))
      await assert.rejects(failing, /of the task/)
      assert.has(await other.oncePer('nightly', 'monday', () => 'done'), { ran: true, result: 'done' })
    })

    test('is done by another box when its process stops responding in the middle', async boxes => {
      const other = await boxes.open()
      const [silent, engine] = await boxes.withFaults()
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
