import { describe, expect, test } from 'vitest'
import { searchQueue } from '../../support/queue-world.js'

describe('each sequence of two steps of a local queue', () => {
  for (const kind of ['exclusive', 'shared', 'permits'] as const)
    test(`serves all callers of ${kind} claims, in order and in time, and leaves nothing`, async () => {
      const { states, fault } = await searchQueue(kind, 2)
      expect(fault).toBeUndefined()
      expect(states).toBeGreaterThan(200)
    })
})
