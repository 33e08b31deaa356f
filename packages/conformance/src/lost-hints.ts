import { CLAIM_WINDOW, WATCH_READ_INTERVAL } from 'signalbox/engine'
import { LostError, UnavailableError } from 'signalbox'
import { testOn, type Boxes } from './boxes.js'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { connected, handOver, queued, timed, until } from './time.js'

/** Less than the time until a watcher or a waiter reads by itself, in milliseconds. */
const AT_ONCE = WATCH_READ_INTERVAL / 2
/** Number of new boxes that wait. */
const NEW = 2
/** Maximum number of attempts, because a busy machine may be late. */
const MAX_ATTEMPTS = 4

/**
 * Asserts that waiters are served before the claim window is over: then a hint has woken them.
 * @param serve serves waiters of a new key, and returns the time that it took, in milliseconds
 */
async function promptly(serve: (key: string) => Promise<number>): Promise<void> {
  let took = Infinity
  for (let attempt = 1; attempt <= MAX_ATTEMPTS && took >= CLAIM_WINDOW; attempt++)
    took = await serve(`key ${attempt}`)
  assert.below(took, CLAIM_WINDOW)
}

/** P5: hints of a process that ends arrive at once, and a lost connection or a failed read loses none. */
export function lostHints(fixture: EngineFixture): void {
  describe('P5 waiters learn of lost hints', () => {
    const test = testOn(fixture)
    const processes = fixture.guarantees.scope !== 'thread'
    const watches = keepsValues(fixture) && fixture.hasRecords !== true

    /** Collects the values of a watch or an observer until the check ends. Waits for the first one. */
    async function given<T>(boxes: Boxes, follow: (signal: AbortSignal) => AsyncIterable<T>): Promise<T[]> {
      const all: T[] = []
      const controller = new AbortController()
      boxes.atEnd(() => controller.abort())
      void (async () => {
        for await (const one of follow(controller.signal)) all.push(one)
      })()
      await until('the first is given', () => all.length === 1)
      return all
    }

    test.runIf(processes && watches)(
      'a watcher sees a change by a process that ends right after its put',
      async boxes => {
        const box = await boxes.open()
        const entries = await given(boxes, signal => box.store('s').watch('key', signal))
        const child = boxes.program('leaver', 'put')
        assert.equal((await child.end()).status, 0)
        const took = await timed(() => until('it is notified', () => entries.at(-1)?.value === 'changed'))
        assert.below(took, AT_ONCE)
      },
    )

    test.runIf(processes)(
      'a waiter gets the key from a process that ends right after its release',
      async boxes => {
        const box = await boxes.open()
        const child = boxes.program('leaver', 'release')
        await child.printed('holding')
        const asked = box.mutex('key').acquire()
        assert.equal((await child.end()).status, 0)
        assert.below(await timed(async () => (await asked).release()), AT_ONCE)
      },
    )

    test.runIf(processes && !fixture.noticesLossByRenewal)(
      'a holder learns at once that another process has released its lock by force',
      async boxes => {
        const box = await boxes.open()
        // A renewal comes after a third of the lease.
        const grant = await box.mutex('key').acquire({ lease: 12 * AT_ONCE })
        const child = boxes.program('leaver', 'force')
        assert.equal((await child.end()).status, 0)
        const took = await timed(() => until('it is notified', () => grant.signal.aborted))
        assert.below(took, AT_ONCE)
        assert.throws(() => grant.assertHeld(), LostError)
      },
    )

    test.runIf(watches)('a watcher and an observer continue after their reads failed', async boxes => {
      const one = await boxes.open()
      const [other, engine] = await boxes.withFaults()
      const entries = await given(boxes, signal => other.store('s').watch('key', signal))
      const leaders = await given(boxes, signal => other.election('e').observe(signal))
      let failed = 0
      engine.intercept = ({ type }, execute) => {
        if (type !== 'read' && type !== 'inspect') return execute()
        failed++
        return Promise.reject(new UnavailableError('out of reach'))
      }
      await one.store('s').put('key', 'changed')
      await one.election('e').campaign()
      await until('both were notified', () => failed >= 2)
      engine.restore()
      const took = await timed(async () => {
        await until('the change is read', () => entries.at(-1)?.value === 'changed')
        await until('the leader is read', () => leaders.at(-1)?.session === one.session)
      })
      assert.below(took, AT_ONCE)
    })

    test.runIf(fixture.network !== 'none')(
      'a waiter whose connections were cut keeps its place, and is woken',
      async boxes => {
        const [one, other] = await boxes.pair()
        const [far, network] = await boxes.overNetwork()
        await promptly(async key => {
          const held = await one.mutex(key).acquire()
          const served: string[] = []
          const first = far.mutex(key).run(() => void served.push('first'))
          await queued(one, key, 1)
          const second = other.mutex(key).run(() => void served.push('second'))
          await queued(one, key, 2)
          network.cut()
          network.restore()
          await connected(far)
          const took = await timed(() => handOver(held, [first, second]))
          if (took < CLAIM_WINDOW) assert.deepEqual(served, ['first', 'second'])
          return took
        })
      },
    )

    test.alone('the first waiters of new boxes are woken', async boxes => {
      const one = await boxes.open()
      await promptly(async key => {
        const held = await one.mutex(key).acquire()
        const others = await boxes.several(NEW)
        const waiting = others.map(box => box.readWriteLock(key).read.acquire())
        await queued(one, key, NEW)
        return timed(() =>
          handOver(
            held,
            waiting.map(async asked => (await asked).release()),
          ),
        )
      })
    })

    test.runIf(fixture.network !== 'none')(
      'a box whose connections were cut learns what happened meanwhile',
      async boxes => {
        const one = await boxes.open()
        const [other, network] = await boxes.overNetwork()
        const held = await one.mutex('key').acquire()
        const asked = other.mutex('key').acquire()
        await queued(one, 'key', 1)
        const term = watches ? await one.election('e').campaign() : undefined
        const leaders = watches ? await given(boxes, signal => other.election('e').observe(signal)) : [term]
        const entries = watches ? await given(boxes, signal => other.store('s').watch('key', signal)) : []
        network.cut()
        await held.release()
        await term?.release()
        if (watches) await one.store('s').put('key', 'changed')
        network.restore()
        const took = await timed(async () => {
          await (await asked).release()
          await until('the end of the term is reported', () => leaders.at(-1) === undefined)
          await until('the change is reported', () => !watches || entries.at(-1)?.value === 'changed')
        })
        assert.below(took, AT_ONCE)
      },
    )
  })
}
