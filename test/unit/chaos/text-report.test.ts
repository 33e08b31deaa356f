import { expect, test } from 'vitest'
import type { Verdict } from '../../../apps/chaos/check/check.js'
import { textVerdict } from '../../../apps/chaos/text-report.js'

const NO_UPDATES = { accepted: 0, refused: 0, lost: 0 }

function verdict(findings: Verdict['findings']): Verdict {
  return {
    findings,
    grants: 0,
    fenced: NO_UPDATES,
    unfenced: NO_UPDATES,
    transfers: { applied: 0, repeated: 0, refused: 0, unknown: 0 },
    storeCalls: 0,
    recoveries: [],
    orders: 0,
    undecided: 0,
  }
}

test('a report shows five findings of each promise and counts the rest', () => {
  const findings: Verdict['findings'] = [
    ...Array.from({ length: 8 }, (_, index) => ({ promise: 'P1' as const, message: `overlap ${index}` })),
    { promise: 'P4', message: 'overtaken' },
  ]
  const text = textVerdict(verdict(findings))
  const shown = text.split('\n').filter(line => /^P\d /.test(line))
  expect(shown).toEqual([...[0, 1, 2, 3, 4].map(index => `P1 overlap ${index}`), 'P4 overtaken'])
  expect(text).toContain('and 3 more\n')
})
