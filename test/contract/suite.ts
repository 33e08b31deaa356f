import { describe } from 'vitest'
import { exclusion } from './exclusion.js'
import type { EngineFixture } from './fixture.js'

/** What every engine does, promise by promise. */
export function contractSuite(fixture: EngineFixture): void {
  describe(fixture.name, () => {
    exclusion(fixture)
  })
}
