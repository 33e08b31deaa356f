import { CLAIM_WINDOW, HEARTBEAT_INTERVAL, WATCH_READ_INTERVAL } from 'signalbox/engine'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { queued, timed, until } from './time.js'

/** Maximum time until a waiter checks in by itself, in milliseconds: before it would expire as silent. */
const LOOKED = HEARTBEAT_INTERVAL + CLAIM_WINDOW

/** P5: hints that never arrive, over connections that stay open, while commands work. */
export function silentHints(fixture: EngineFixture): void {
  describe('lost hints', () => {
    const test = testOn(fixture)

    for (const before of [true, false]) {
      const since = before ? 'since before the box first waited' : 'after it had waited'

      test(`${since}: waiters find out by checking`, async boxes => {
        const [other, network] = await boxes.overNetwork()
        const box = await boxes.open()
        const wait = async (): Promise<number> => {
          const held = await box.mutex('key').acquire()
          const asked = other.mutex('key').acquire()
          await queued(box, 'key', 1)
          await held.release()
          return timed(async () => (await asked).release())
        }
        if (!before) await wait()
        network.loseHints?.()
        for (let round = 0; round < 4; round++) assert.below(await wait(), LOOKED)
        // The other way round nothing is lost.
        const held = await other.mutex('key').acquire()
        const asked = box.mutex('key').acquire()
        await queued(box, 'key', 1)
        await held.release()
        assert.below(await timed(async () => (await asked).release()), LOOKED)
      })
    }

    test.runIf(keepsValues(fixture) && fixture.hasRecords !== true)(
      'a watcher looks by itself',
      async boxes => {
        const [other, network] = await boxes.overNetwork()
        const box = await boxes.open()
        const seen: unknown[] = []
        const controller = new AbortController()
        boxes.atEnd(() => controller.abort())
        void (async () => {
          for await (const entry of other.store('s').watch('key', controller.signal)) seen.push(entry?.value)
        })().catch((error: unknown) => seen.push(error))
        await until('the first is given', () => seen.length === 1)
        network.loseHints?.()
        for (const change of ['first', 'second']) {
          await box.store('s').put('key', change)
          await until('the change is seen', () => seen.includes(change), 2 * WATCH_READ_INTERVAL)
        }
      },
    )
  })
}
