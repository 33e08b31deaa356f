import { CLAIM_WINDOW } from 'signalbox/engine'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { halfShare, HotKey } from './hot-key.js'
import { assertServed, locks, longestStall, pause, queued, until } from './time.js'

/** Round trips to the servers, in milliseconds. */
const ROUND_TRIPS = [40, 150, 400]

/** A value that takes several packets. */
const LARGE = 'x'.repeat(10_000)

/** Number of callers of a far box that may be inside together. */
const TOGETHER = 20

/** A lease that a far holder keeps, in milliseconds. */
const LEASE = 10_000

/** P1, P3, P4: a box far from the servers has the same rights as the near ones. */
export function distance(fixture: EngineFixture): void {
  describe('distance', () => {
    const test = testOn(fixture)

    for (const roundTrip of ROUND_TRIPS) {
      describe(`a box ${roundTrip} ms away`, () => {
        test.alone('gets at least half of its fair share of a hot key', async boxes => {
          const [far, network] = await boxes.overNetwork()
          const near = await boxes.pair()
          network.slowDown({ way: roundTrip / 2 })
          const hot = new HotKey([far, ...near])
          // Enough for some turns of each box. A turn of the far box takes several round trips.
          const shares = await hot.shares(4000 + 20 * roundTrip)
          await hot.stop()
          assert.atLeast(shares[0], halfShare(shares))
        })

        test.alone('works on other keys while near ones share a hot key', async boxes => {
          const [far, network] = await boxes.overNetwork()
          const near = await boxes.pair()
          const hasValues = keepsValues(fixture)
          if (hasValues) await near[0].store('s').put('large', LARGE)
          network.slowDown({ way: roundTrip / 2 })
          const hot = new HotKey(near)
          await hot.during(500)
          await far.mutex('cold').run(() => undefined)
          await locks(far)
          if (hasValues) {
            await far.store('s').put('key', 'value')
            assert.equal((await far.store('s').get('large'))?.value, LARGE)
          }
          await hot.stop()
        })

        test.alone('is served in order of arrival', async boxes => {
          const [far, network] = await boxes.overNetwork()
          const [holder, before, behind] = await boxes.several(3)
          network.slowDown({ way: roundTrip / 2 })
          for (let round = 0; round < 3; round++) {
            const held = await holder!.mutex('key').acquire()
            const served: string[] = []
            const waiting: Promise<void>[] = []
            for (const [name, box] of Object.entries({ before: before!, far, behind: behind! })) {
              waiting.push(box.mutex('key').run(() => void served.push(name)))
              await queued(holder!, 'key', waiting.length)
            }
            const stall = longestStall()
            await held.release()
            await Promise.all(waiting)
            // A waiter that does not check in within the claim window loses its turn.
            const isInOrder = 1.5 * roundTrip + 2 * stall() < CLAIM_WINDOW
            assertServed(served, ['before', 'far', 'behind'], isInOrder)
          }
        })

        test.alone('has all callers inside that may be, after a few round trips', async boxes => {
          const [far, network] = await boxes.overNetwork()
          network.slowDown({ way: roundTrip / 2 })
          const options = { limit: 10_000, per: '1s', concurrency: TOGETHER } as const
          const kinds: ((task: () => Promise<void>) => Promise<void>)[] = [
            task => far.readWriteLock('readers').read.run(task),
            task => far.semaphore('semaphore', { max: TOGETHER }).run(task),
          ]
          if (hasLimits(fixture)) kinds.push(task => far.limiter('limiter', options).run(task))
          for (const run of kinds) {
            // The first call opens connections.
            await run(() => Promise.resolve())
            const stall = longestStall()
            const begun = performance.now()
            let inside = 0
            let took = 0
            const allInside = async (): Promise<void> => {
              if (++inside === TOGETHER) took = performance.now() - begun
              await until('all are inside', () => inside === TOGETHER)
            }
            await Promise.all(Array.from({ length: TOGETHER }, () => run(allInside)))
            assert.below(took, (TOGETHER / 2) * roundTrip + stall())
          }
        })

        test('keeps a lease of 10 s that others wait for', async boxes => {
          const [far, network] = await boxes.overNetwork()
          const near = await boxes.open()
          network.slowDown({ way: roundTrip / 2 })
          const held = await far.mutex('key').acquire({ lease: LEASE })
          const asked = near.mutex('key').acquire()
          const end = performance.now() + 1.5 * LEASE
          while (performance.now() < end) {
            held.assertHeld()
            await pause(100)
          }
          await held.release()
          const next = await asked
          assert.above(next.token, held.token)
          await next.release()
        })
      })
    }
  })
}
