import { describe } from './checks.js'
import { assert } from './assert.js'
import type { Box } from '../index.js'
import { testOn, type Boxes } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import type { MeddledEngine } from './meddled-engine.js'
import { pause, queued, soFar, timed } from './time.js'

/** P5: a release wakes exactly the waiters that can run now. The others only renew their entries. */
export function waking(fixture: EngineFixture): void {
  describe('P5 woken, not polling', () => {
    const test = testOn(fixture)

    /** A box that has waited once: a first wait may open connections, and poll when they are there. */
    async function practised(boxes: Boxes): Promise<[Box, MeddledEngine]> {
      const [box, engine] = await boxes.meddled()
      const other = await boxes.open()
      const held = await other.mutex('practice').acquire()
      const asked = box.mutex('practice').acquire()
      await queued(other, 'practice', 1)
      await held.release()
      await (await asked).release()
      engine.operations.length = 0
      return [box, engine]
    }

    /** Boxes that wait for a key, in this order, each with its operations. */
    async function waiters(boxes: Boxes, count: number, ask: (box: Box) => Promise<unknown>) {
      const all: { box: Box; engine: MeddledEngine; asked: Promise<unknown> }[] = []
      for (let place = 1; place <= count; place++) {
        const [box, engine] = await practised(boxes)
        const asked = ask(box)
        // Some wait until their box is closed.
        asked.catch(() => undefined)
        await queued(box, 'key', place)
        all.push({ box, engine, asked })
      }
      return all
    }

    test.alone('a waiter sends one request and then nothing until it is woken', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      const [waiter] = await waiters(boxes, 1, box => box.mutex('key').acquire())
      const before = waiter!.engine.count('poll')
      await pause(700)
      assert.equal(await soFar(waiter!.asked), 'pending')
      assert.equal(waiter!.engine.count('enqueue'), 1)
      assert.equal(waiter!.engine.count('poll'), before)
      await held.release()
      await waiter!.asked
      assert.equal(waiter!.engine.count('enqueue'), 1)
      assert.equal(waiter!.engine.count('poll'), before + 1)
    })

    test('a waiter behind a short, renewed lease polls about once a lease', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire({ lease: 2400 })
      const [waiter] = await waiters(boxes, 1, box => box.mutex('key').acquire())
      await pause(4800)
      assert.atMost(waiter!.engine.count('poll'), 5)
      held.assertHeld()
      await held.release()
      await waiter!.asked
    })

    test.alone('a release wakes only the first waiter', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      const all = await waiters(boxes, 4, box => box.mutex('key').acquire())
      await held.release()
      await all[0]!.asked
      await pause(100)
      assert.deepEqual(
        all.map(({ engine }) => engine.count('poll')),
        [1, 0, 0, 0],
      )
      for (const { asked } of all.slice(1)) assert.equal(await soFar(asked), 'pending')
    })

    test.alone('a release wakes all readers at the head, and not the writer behind them', async boxes => {
      const holder = await boxes.open()
      const held = await holder.readWriteLock('key').write.acquire()
      const readers = await waiters(boxes, 3, box => box.readWriteLock('key').read.acquire())
      const [writer, engine] = await practised(boxes)
      const writing = writer.readWriteLock('key').write.acquire()
      writing.catch(() => undefined)
      await queued(writer, 'key', 4)
      await held.release()
      for (const { asked } of readers) await asked
      await pause(100)
      for (const reader of readers) assert.equal(reader.engine.count('poll'), 1)
      assert.equal(engine.count('poll'), 0)
      assert.equal(await soFar(writing), 'pending')
    })

    test.alone('released permits wake as many waiters as they suffice for', async boxes => {
      const holder = await boxes.open()
      const held = await holder.semaphore('key', { permits: 3 }).acquire({ permits: 3 })
      const all = await waiters(boxes, 4, box => box.semaphore('key', { permits: 3 }).acquire())
      await held.release()
      for (const { asked } of all.slice(0, 3)) await asked
      await pause(100)
      assert.deepEqual(
        all.map(({ engine }) => engine.count('poll')),
        [1, 1, 1, 0],
      )
    })

    test.alone('a released key does not wake a waiter that also waits for another key', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      const other = await holder.mutex('other').acquire()
      await boxes.place.settled?.()
      const [waiter] = await waiters(boxes, 1, box => box.mutex('key', 'other').acquire())
      await held.release()
      await pause(100)
      assert.equal(waiter!.engine.count('poll'), 0)
      await other.release()
      await waiter!.asked
      assert.equal(waiter!.engine.count('poll'), 1)
    })

    test('a woken waiter runs long before its next poll', async boxes => {
      const holder = await boxes.open()
      for (let round = 0; round < 5; round++) {
        const held = await holder.mutex('key').acquire()
        const [waiter] = await waiters(boxes, 1, box => box.mutex('key').run(() => undefined))
        const took = await timed(async () => {
          await held.release()
          await waiter!.asked
        })
        assert.below(took, 2000)
      }
    })

    test.alone('a waiter that gives up wakes the waiters behind it that can run now', async boxes => {
      const holder = await boxes.open()
      const held = await holder.readWriteLock('key').read.acquire()
      const [box, engine] = await practised(boxes)
      const controller = new AbortController()
      const leaving = holder.readWriteLock('key').write.acquire({ signal: controller.signal })
      const left = assert.rejects(leaving)
      await queued(holder, 'key', 1)
      const reading = box.readWriteLock('key').read.acquire()
      await queued(box, 'key', 2)
      controller.abort()
      await left
      await reading
      assert.equal(engine.count('poll'), 1)
      held.assertHeld()
    })

    test('a wake-up that arrives before the answer to the request is not lost', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      const [box, engine] = await boxes.meddled()
      engine.meddle = async (operation, carryOut) => {
        const outcome = await carryOut()
        if (operation.type === 'enqueue') await pause(150)
        return outcome
      }
      const asked = box.mutex('key').acquire()
      await queued(holder, 'key', 1)
      await held.release()
      assert.below(await timed(() => asked), 2000)
    })

    test("a waiter that receives no hints gets the key when the holder's lease is over", async boxes => {
      const holder = await boxes.open()
      await holder.mutex('key').acquire({ lease: 300, renew: false })
      const [box, engine] = await boxes.meddled()
      engine.hears = () => false
      const took = await timed(() => box.mutex('key').acquire())
      assert.below(took, 5000)
    })
  })
}
