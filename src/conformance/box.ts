import { describe } from './checks.js'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { inspecting } from './inspect.js'
import { closing } from './close.js'

/** A box: its guarantees and its session, what it inspects, and how it closes. */
export function box(fixture: EngineFixture): void {
  describe('a box', () => {
    const test = testOn(fixture)

    test("it shows its engine's guarantees", async boxes => {
      const one = await boxes.open()
      assert.deepEqual(one.guarantees, fixture.guarantees)
    })

    test('each has a session of its own', async boxes => {
      const all = await boxes.several(4)
      assert.equal(new Set(all.map(({ session }) => session)).size, 4)
    })

    inspecting(fixture)
    closing(fixture)
  })
}
