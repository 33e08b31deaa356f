import { describe, expect, test } from 'vitest'
import { faults } from '../simulation/faults.js'
import { faultySources } from '../simulation/faulty-sources.js'
import type { Violation } from '../simulation/history.js'
import { simulate } from '../simulation/simulate.js'

/** So many schedules at most until each mistake has to be found. */
const SCHEDULES = 1000

describe('a mistake in the sources is found', () => {
  test.each(faults)('$name', async fault => {
    const { sources, remove } = await faultySources(fault)
    try {
      let found: Violation | undefined
      for (let seed = 1; !found && seed <= SCHEDULES; seed++)
        found = (await simulate(seed, sources)).violation
      expect(found, `${SCHEDULES} schedules went by`).toBeDefined()
      // A mistake that is no program breaks every promise.
      expect(found!.message).not.toMatch(/ReferenceError|SyntaxError/)
      expect(fault.breaks, found!.message).toContain(found!.promise)
    } finally {
      remove()
    }
  })
})
