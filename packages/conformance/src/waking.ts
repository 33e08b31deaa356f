import { describe } from './checks.js'
import { assert } from './assert.js'
import type { Box, Grant } from 'signalbox'
import { HEARTBEAT_INTERVAL } from 'signalbox/engine'
import { testOn, type Boxes } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import type { FaultInjectingEngine } from './fault-injecting-engine.js'
import { LAPSING, pause, queued, soFar, timed, until } from './time.js'

/** Acquires a lock of a key. */
type Ask = (box: Box, key: string, signal: AbortSignal) => Promise<Grant>

const lock: Ask = (box, key, signal) => box.mutex(key).acquire({ signal })
const read: Ask = (box, key, signal) => box.readWriteLock(key).read.acquire({ signal })
const write: Ask = (box, key, signal) => box.readWriteLock(key).write.acquire({ signal })
const permits =
  (count: number): Ask =>
  (box, key, signal) =>
    box.semaphore(key, { max: 3 }).acquire({ permits: count, signal })

/** Maximum number of attempts to see something undisturbed. */
const MAX_ATTEMPTS = 10

/** Maximum number of times that a waiting box is watched. */
const MAX_WINDOWS = 3

/**
 * Returns the result of `work` for a new key. Repeats an attempt in which a waiter had to report that it lives, because
 * the report is a check-in, too. A loaded machine may take several attempts.
 * @param work its signal aborts the requests that still wait after an attempt
 */
async function undisturbed<T>(work: (key: string, signal: AbortSignal) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const controller = new AbortController()
    const begun = performance.now()
    const seen = await work(`key ${attempt}`, controller.signal)
    controller.abort()
    if (performance.now() - begun < HEARTBEAT_INTERVAL / 2 || attempt === MAX_ATTEMPTS) return seen
  }
}

/** P5: a release wakes exactly the waiters that can run now. Signs of life keep the entries of the others. */
export function waking(fixture: EngineFixture): void {
  describe('P5 waiters are woken', () => {
    const test = testOn(fixture)

    /** Opens a box that has waited once. A first wait may open connections, and check in when they are open. */
    async function practised(boxes: Boxes): Promise<[Box, FaultInjectingEngine]> {
      const [box, engine] = await boxes.withFaults()
      const other = await boxes.open()
      const held = await other.mutex('practice').acquire()
      const asked = box.mutex('practice').acquire()
      await queued(other, 'practice', 1)
      await engine.answered()
      await held.release()
      await (await asked).release()
      await boxes.place.settled?.(box.session)
      engine.operations.length = 0
      return [box, engine]
    }

    /** Opens boxes that have waited once. */
    async function several(boxes: Boxes, count: number): Promise<[Box, FaultInjectingEngine][]> {
      const all = []
      for (let place = 1; place <= count; place++) all.push(await practised(boxes))
      return all
    }

    /** Returns the check-ins and the states of waiters after a grant that they all wait for is released. */
    async function released(boxes: Boxes, hold: Ask, asks: readonly Ask[], served: number) {
      const holder = await boxes.open()
      const waiters = await several(boxes, asks.length)
      return undisturbed(async (key, signal) => {
        const held = await hold(holder, key, signal)
        const asked: Promise<Grant>[] = []
        for (const [place, [box, engine]] of waiters.entries()) {
          engine.operations.length = 0
          const asking = asks[place]!(box, key, signal)
          // The last ones wait until the end.
          asking.catch(() => undefined)
          asked.push(asking)
          await queued(box, key, place + 1)
        }
        await held.release()
        await Promise.all(asked.slice(0, served))
        await pause(100)
        return {
          checkIns: waiters.map(([, engine]) => engine.count('checkIn')),
          states: await Promise.all(asked.map(soFar)),
        }
      })
    }

    test.alone('a waiter sends one request and then nothing until it is woken', async boxes => {
      const holder = await boxes.open()
      const [[box, engine]] = (await several(boxes, 1)) as [[Box, FaultInjectingEngine]]
      const counts = (): number[] => [engine.count('enqueue'), engine.count('checkIn')]
      const seen = await undisturbed(async (key, signal) => {
        const held = await holder.mutex(key).acquire()
        engine.operations.length = 0
        const asked = box.mutex(key).acquire({ signal })
        await queued(box, key, 1)
        await pause(300)
        const state = await soFar(asked)
        const waiting = counts()
        await held.release()
        await asked
        return { state, waiting, woken: counts() }
      })
      assert.deepEqual(seen, { state: 'pending', waiting: [1, 0], woken: [1, 1] })
    })

    for (const count of [1, 100])
      test(`${count} waiting requests of a box send one sign of life in an interval, and nothing else`, async boxes => {
        const [box, engine] = await practised(boxes)
        // Others send heartbeats.
        if (!engine.coversBySigns) return
        const holder = await boxes.open()
        const keys = Array.from({ length: count }, (_, index) => `key ${index}`)
        const held = await holder.mutex(...keys).acquire({ lease: '60s' })
        let answers = 0
        engine.intercept = async (_, execute) => execute().finally(() => answers++)
        const asked = keys.map(key => box.mutex(key).acquire({ lease: '60s' }))
        await until('all are queued', () => answers === count)
        // On a loaded machine, a server may be late, and is asked again.
        for (let attempt = 1, others = 1; others > 0; attempt++) {
          engine.operations.length = 0
          const begun = performance.now()
          await pause(2.5 * HEARTBEAT_INTERVAL)
          const signs = engine.count('alive')
          others = engine.operations.length - signs
          assert.atMost(signs, (performance.now() - begun) / HEARTBEAT_INTERVAL + 1)
          if (attempt === MAX_WINDOWS) assert.equal(others, 0)
        }
        await held.release()
        for (const grant of await Promise.all(asked)) await grant.release()
      })

    test('a waiter behind a short, renewed lease checks in about once a lease', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire({ lease: 4000 })
      const [box, engine] = await practised(boxes)
      const asked = box.mutex('key').acquire()
      await queued(box, 'key', 1)
      await pause(4800)
      assert.atMost(engine.count('checkIn'), 5)
      held.assertHeld()
      await held.release()
      await asked
    })

    test.alone('a release wakes only the first waiter', async boxes => {
      const { checkIns, states } = await released(boxes, lock, [lock, lock, lock, lock], 1)
      assert.deepEqual(checkIns, [1, 0, 0, 0])
      assert.deepEqual(states, ['fulfilled', 'pending', 'pending', 'pending'])
    })

    test.alone('a release wakes all readers at the head, and not the writer behind them', async boxes => {
      const { checkIns, states } = await released(boxes, write, [read, read, read, write], 3)
      assert.deepEqual(checkIns, [1, 1, 1, 0])
      assert.deepEqual(states, ['fulfilled', 'fulfilled', 'fulfilled', 'pending'])
    })

    test.alone('released permits wake as many waiters as they are enough for', async boxes => {
      const { checkIns, states } = await released(boxes, permits(3), Array<Ask>(4).fill(permits(1)), 3)
      assert.deepEqual(checkIns, [1, 1, 1, 0])
      assert.deepEqual(states, ['fulfilled', 'fulfilled', 'fulfilled', 'pending'])
    })

    test.alone('a released key does not wake a waiter that also waits for another key', async boxes => {
      const holder = await boxes.open()
      const [[box, engine]] = (await several(boxes, 1)) as [[Box, FaultInjectingEngine]]
      const seen = await undisturbed(async (key, signal) => {
        const held = await holder.mutex(key).acquire()
        const other = await holder.mutex(`${key} other`).acquire()
        await boxes.place.settled?.()
        engine.operations.length = 0
        const asked = box.mutex(key, `${key} other`).acquire({ signal })
        await queued(box, key, 1)
        await held.release()
        await pause(100)
        const before = engine.count('checkIn')
        await other.release()
        await asked
        return [before, engine.count('checkIn')]
      })
      assert.deepEqual(seen, [0, 1])
    })

    test('a woken waiter runs long before its next check-in', async boxes => {
      const holder = await boxes.open()
      for (let round = 0; round < 5; round++) {
        const held = await holder.mutex('key').acquire()
        const [box] = await practised(boxes)
        const asked = box.mutex('key').run(() => undefined)
        await queued(box, 'key', 1)
        const took = await timed(async () => {
          await held.release()
          await asked
        })
        assert.below(took, 3500)
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
      const begun = performance.now()
      const reading = box.readWriteLock('key').read.acquire()
      await queued(box, 'key', 2)
      controller.abort()
      await left
      await reading
      const checkIns = engine.count('checkIn')
      // A waiter that stands still for longer has to report that it lives, which is a check-in, too.
      if (performance.now() - begun < HEARTBEAT_INTERVAL / 2) assert.equal(checkIns, 1)
      held.assertHeld()
    })

    test('a wake-up that arrives before the answer to the request is not lost', async boxes => {
      const holder = await boxes.open()
      const held = await holder.mutex('key').acquire()
      const [box, engine] = await boxes.withFaults()
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        if (operation.type === 'enqueue') await pause(150)
        return outcome
      }
      const asked = box.mutex('key').acquire()
      await queued(holder, 'key', 1)
      await held.release()
      assert.below(await timed(() => asked), 3500)
    })

    test("a waiter that receives no hints gets the key when the holder's lease expires", async boxes => {
      const holder = await boxes.open()
      await holder.mutex('key').acquire({ lease: LAPSING, renew: false })
      const [box, engine] = await boxes.withFaults()
      engine.delivers = () => false
      const took = await timed(() => box.mutex('key').acquire())
      assert.below(took, 5000)
    })
  })
}
