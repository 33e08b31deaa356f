import { describe, test } from './checks.js'
import { assert } from './assert.js'
import type { EngineFixture } from './fixture.js'

/** Each promise that the engine weakens: a test shows that it does. */
export function weaknesses(fixture: EngineFixture): void {
  describe('declared weaknesses', () => {
    for (const { promise, how } of fixture.guarantees.weaknesses) {
      // These two are shown with a clock that is set, which other checks would see.
      const add = promise === 'P2' || promise === 'P11' ? test.alone : test
      add(`${promise}: ${how}`, async () => {
        const show = fixture.weaknesses[promise]
        assert.notEqual(show, undefined, `a test that shows how ${promise} is weakened`)
        await show!()
      })
    }

    test('nothing is shown that is not declared', () => {
      const declared = new Set<string>(fixture.guarantees.weaknesses.map(({ promise }) => promise))
      assert.deepEqual(
        Object.keys(fixture.weaknesses).filter(promise => !declared.has(promise)),
        [],
      )
    })
  })
}
