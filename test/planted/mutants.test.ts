import { describe, expect, test } from 'vitest'
import { mutants } from './mutants.js'
import { mutatedSources } from './mutated-sources.js'
import type { Violation } from '../simulation/history.js'
import { simulate } from '../simulation/simulate.js'

/** Maximum number of schedules until a mutant must be found. */
const SCHEDULES = 1000

describe('a mutant is found', () => {
  test.each(mutants)('$id: $description', async mutant => {
    const { sources, remove } = await mutatedSources(mutant)
    try {
      let found: Violation | undefined
      for (let seed = 1; !found && seed <= SCHEDULES; seed++)
        found = (await simulate(seed, sources)).violation
      expect(found, `${SCHEDULES} schedules went by`).toBeDefined()
      // A mutant that does not run breaks every promise.
      expect(found!.message).not.toMatch(/ReferenceError|SyntaxError/)
      expect(mutant.breaks, found!.message).toContain(found!.promise)
    } finally {
      remove()
    }
  })
})
