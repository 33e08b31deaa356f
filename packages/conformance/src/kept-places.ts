import { AbortedError, type Box } from 'signalbox'
import { CLAIM_WINDOW } from 'signalbox/engine'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { hasLimits, type EngineFixture } from './fixture.js'
import { assertServed, queued } from './time.js'

/** Something that a caller can release. */
interface Held {
  release(): unknown
}

/** A way to wait for a key. */
interface Way {
  readonly name: string
  readonly key: string
  /** The number of requests of two callers of one box. */
  readonly requests: 1 | 2
  /** Takes the whole capacity. After the returned part is released, others can use it one after another. */
  readonly hold: (box: Box) => Promise<Held>
  /** Acquires for a caller of the far box. */
  readonly ask: (box: Box, signal?: AbortSignal) => Promise<Held>
  /** Acquires for another box, if its lock must exclude that of the far box. Default: `ask` */
  readonly askOther?: (box: Box) => Promise<Held>
}

const mutex: Way = {
  name: 'mutex',
  key: 'key',
  requests: 1,
  hold: box => box.mutex('key').acquire(),
  ask: (box, signal) => box.mutex('key').acquire({ signal }),
}

const readers: Way = {
  name: 'read lock',
  key: 'key',
  requests: 1,
  hold: box => box.readWriteLock('key').write.acquire(),
  ask: (box, signal) => box.readWriteLock('key').read.acquire({ signal }),
  askOther: box => box.readWriteLock('key').write.acquire(),
}

const semaphore: Way = {
  name: 'semaphore',
  key: 'key',
  requests: 2,
  hold: async box => (await Promise.all([semaphore.ask(box), semaphore.ask(box)]))[0],
  ask: (box, signal) => box.semaphore('key', { max: 2 }).acquire({ signal }),
}

const concurrency: Way = {
  name: 'concurrency of a limit',
  key: 'limiter:3:api',
  requests: 2,
  hold: async box => (await Promise.all([concurrency.ask(box), concurrency.ask(box)]))[0],
  ask: (box, signal) => box.limiter('api', { limit: 1000, per: '1s', concurrency: 2 }).acquire(1, { signal }),
}

/** P4: the place of a caller does not depend on callers of its box that ask later. */
export function keptPlaces(fixture: EngineFixture): void {
  describe('P4 a caller that gives up costs no earlier caller of its box its place', () => {
    const test = testOn(fixture)

    for (const way of [mutex, readers, semaphore, ...(hasLimits(fixture) ? [concurrency] : [])])
      test(way.name, async boxes => {
        const { key, requests, hold, ask, askOther = ask } = way
        const [holder, near] = await boxes.pair()
        const [far, engine] = await boxes.withFaults()
        const held = await hold(holder)
        let arrive!: () => void
        const arrived = new Promise<void>(resolve => (arrive = resolve))
        engine.intercept = async (_, execute) => {
          const outcome = await execute()
          await arrived
          return outcome
        }
        const served: string[] = []
        const visit = async (name: string, asked: Promise<Held>): Promise<void> => {
          const mine = await asked
          served.push(name)
          await mine.release()
        }
        const earlier = visit('earlier', ask(far))
        await queued(near, key, 1)
        const other = visit('other box', askOther(near))
        await queued(near, key, 2)
        const controller = new AbortController()
        const leaving = ask(far, controller.signal)
        leaving.catch(() => undefined)
        await queued(near, key, 1 + requests)
        controller.abort()
        await assert.rejects(leaving, AbortedError)
        arrive()
        await queued(near, key, 2)
        const begun = performance.now()
        await held.release()
        await Promise.all([earlier, other])
        // A waiter that does not check in within the claim window loses its turn.
        assertServed(served, ['earlier', 'other box'], performance.now() - begun < CLAIM_WINDOW)
      })
  })
}
