import { describe, test } from './checks.js'
import { assert } from './assert.js'
import type { EngineFixture } from './fixture.js'

/** The fixture shows each weakness that the engine declares. */
export function weaknesses(fixture: EngineFixture): void {
  describe('declared weaknesses', () => {
    for (const { promise, how } of fixture.guarantees.weaknesses) {
      // The fixtures show these two by setting a clock, which would disturb other checks.
      const add = promise === 'P2' || promise === 'P11' ? test.alone : test
      add(`${promise}: ${how}`, async () => {
        const show = fixture.weaknesses[promise]
        assert.notEqual(show, undefined, `a test that shows how ${promise} is weakened`)
        await show!()
      })
    }

    test('the fixture shows no weakness that is not declared', () => {
      const declared = new Set<string>(fixture.guarantees.weaknesses.map(({ promise }) => promise))
      assert.deepEqual(
        Object.keys(fixture.weaknesses).filter(promise => !declared.has(promise)),
        [],
      )
    })
  })
}
