import { describe, expect, test } from 'vitest'
import { majorityOf, verdictOf, votesNeeded, type Tally } from '../src/tally.js'

const SERVERS = [3, 4, 5, 6, 7]
const PERMITS = [1, 2, 3, 4, 8]

/** Yields all combinations of answers that this many servers can have given. */
function* tallies(servers: number): Generator<Tally> {
  for (let held = 0; held <= servers; held++)
    for (let refused = 0; held + refused <= servers; refused++)
      for (let failed = 0; held + refused + failed <= servers; failed++)
        for (let pending = 0; held + refused + failed + pending <= servers; pending++) {
          const unasked = servers - held - refused - failed - pending
          for (const isLate of [false, true]) yield { held, refused, failed, pending, unasked, isLate }
        }
}

describe('the result of the votes', () => {
  test('two majorities always have a server in common, and no fewer are enough', () => {
    for (const servers of SERVERS) {
      expect(2 * majorityOf(servers)).toBeGreaterThan(servers)
      expect(2 * (majorityOf(servers) - 1)).toBeLessThanOrEqual(servers)
    }
  })

  test('a grant needs just as many votes as rule out one permit too many', () => {
    for (const servers of SERVERS) {
      expect(votesNeeded(servers, 1)).toBe(majorityOf(servers))
      for (const permits of PERMITS) {
        const needed = votesNeeded(servers, permits)
        expect(needed).toBeLessThanOrEqual(servers)
        expect((permits + 1) * needed).toBeGreaterThan(servers * permits)
        expect((permits + 1) * (needed - 1)).toBeLessThanOrEqual(servers * permits)
      }
    }
  })

  test.each(PERMITS)(
    'it is final exactly when missing answers can not change it, with %i permits',
    permits => {
      for (const servers of SERVERS) {
        const majority = majorityOf(servers)
        const needed = votesNeeded(servers, permits)
        for (const tally of tallies(servers)) {
          const { held, refused, pending, unasked } = tally
          const open = pending + unasked
          const endings = new Set<string>()
          // Each missing answer can still be a vote, a refusal or a failure.
          for (let votes = 0; votes <= open; votes++)
            for (let refusals = 0; votes + refusals <= open; refusals++) {
              const granted = held + votes >= needed
              const isTold = refused + refusals > 0 && held + votes + refused + refusals >= majority
              endings.add(granted ? 'granted' : isTold ? 'refused' : 'unreachable')
            }
          const verdict = verdictOf(tally, needed)
          if (endings.size === 1) expect([verdict, tally]).toEqual([[...endings][0], tally])
          else expect(['ask more', 'wait']).toContain(verdict)
        }
      }
    },
  )

  test('more servers are asked only when none is pending or all pending ones are late', () => {
    for (const servers of SERVERS) {
      for (const tally of tallies(servers)) {
        const verdict = verdictOf(tally, majorityOf(servers))
        if (verdict === 'ask more') {
          expect(tally.unasked).toBeGreaterThan(0)
          expect(tally.pending === 0 || tally.isLate).toBe(true)
        }
        if (verdict === 'wait') expect(tally.pending).toBeGreaterThan(0)
      }
    }
  })
})
