import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'
import { HotKey } from './hot-key.js'
import { queued, timed, until } from './time.js'

/** Maximum time until a box has noticed its dead connections and works again over others, in milliseconds. */
const RECOVERED = 30_000
/** The lease of a lock that the box holds meanwhile, in milliseconds. */
const LEASE = 10_000

/** P1, P9, P12: connections that swallow data in one direction, and stay open. */
export function halfDead(fixture: EngineFixture): void {
  describe('half-dead connections', () => {
    const test = testOn(fixture)

    for (const way of ['requests', 'replies'] as const) {
      test.alone(`${way}: the others continue, and the box recovers by itself`, async boxes => {
        const [box, network] = await boxes.overNetwork()
        const near = await boxes.pair()
        const held = await box.mutex('held').acquire({ lease: LEASE })
        const hot = new HotKey(near)
        await hot.during(500)
        const asked = near[0].mutex('held').acquire()
        await queued(near[1], 'held', 1)
        network.swallow(way)
        const turns = hot.turns[0]!
        const began = performance.now()
        const isBack = until(
          'it works again',
          () =>
            box
              .mutex('other')
              .run(() => undefined, { wait: 2000 })
              .then(
                () => true,
                () => false,
              ),
          RECOVERED,
        )
        await hot.during(2000)
        assert.above(hot.turns[0], turns)
        await isBack
        await hot.stop()
        // The box has kept the grant over new connections, or has lost it at its deadline.
        if (!held.signal.aborted) await held.release()
        const next = await asked
        assert.above(next.token, held.token)
        assert.below(performance.now() - began, RECOVERED + 2 * LEASE)
        await next.release()
      })

      test(`${way}: the box closes soon`, async boxes => {
        const [box, network] = await boxes.overNetwork()
        const near = await boxes.open()
        await box.mutex('key').acquire({ lease: LEASE })
        network.swallow(way)
        const asked = near.mutex('key').acquire()
        assert.below(await timed(() => box.close()), LEASE)
        await (await asked).release()
      })
    }
  })
}
