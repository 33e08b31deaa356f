import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { keepsValues, type Delays, type EngineFixture } from './fixture.js'
import { HotKey } from './hot-key.js'
import { pause } from './time.js'

/** Maximum added delay of a packet, in milliseconds. */
const MAX_LATENCY = 500

const ways: readonly (readonly [name: string, delays: Delays])[] = [
  ['requests', { way: 0, requestJitter: MAX_LATENCY }],
  ['replies', { way: 0, replyJitter: MAX_LATENCY }],
]

/** P1, P3, P13: packets of one box that take from 0 to 500 ms, one way. */
export function jitter(fixture: EngineFixture): void {
  describe('jitter of 500 ms', () => {
    const test = testOn(fixture)

    for (const [way, delays] of ways) {
      test.alone(`of ${way}: the box gets turns of a hot key, and no lease is lost`, async boxes => {
        const [far, network] = await boxes.overNetwork()
        const near = await boxes.pair()
        network.slowDown(delays)
        const held = await far.mutex('held').acquire({ lease: '10s' })
        const hot = new HotKey([far, ...near])
        await hot.during(20_000)
        held.assertHeld()
        const { turns } = hot
        await hot.stop()
        held.assertHeld()
        await held.release()
        for (const count of turns) assert.atLeast(count, 5)
      })

      test.runIf(keepsValues(fixture))(`of ${way}: all transactions are made once`, async boxes => {
        const [far, network] = await boxes.overNetwork()
        const near = await boxes.open()
        network.slowDown(delays)
        let applied = 0
        const changes = [far, near].map(async (box, index) => {
          for (let count = 0; count < 8; count++) {
            const { applied: isNew } = await box
              .store('s')
              .transaction(
                ['sum'],
                transaction => transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1),
                { id: `${index} ${count}` },
              )
            if (isNew) applied++
            await pause(10)
          }
        })
        await Promise.all(changes)
        assert.equal(applied, 16)
        assert.equal((await near.store('s').get('sum'))?.value, 16)
      })
    }
  })
}
