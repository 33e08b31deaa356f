import { expect, test } from 'vitest'
import { linearizable, type Operation } from '../../../apps/chaos/check/linearizable.js'
import { Random } from '../../../packages/conformance/src/random.js'

/** Operations on a register that begins with 0. */
function write(from: number, until: number | undefined, value: number): Operation<number> {
  return { from, ...(until !== undefined && { until }), apply: () => value }
}

function read(from: number, until: number, value: number): Operation<number> {
  return { from, until, apply: state => (state === value ? state : undefined) }
}

test('gives the result of trying all orders', () => {
  const random = new Random(7)
  const answers = { yes: 0, no: 0 }
  for (let round = 0; round < 3000; round++) {
    const operations = Array.from({ length: 2 + random.below(5) }, () => {
      const from = random.below(12)
      const until = from + random.below(8)
      const value = random.below(3)
      const dice = random.below(5)
      if (dice < 2) return write(from, until, value)
      return dice === 2 ? write(from, undefined, value) : read(from, until, value)
    })
    const expected = someOrder(0, operations) ? 'yes' : 'no'
    expect(linearizable(0, operations), `round ${round}`).toBe(expected)
    answers[expected]++
  }
  expect(Math.min(answers.yes, answers.no)).toBeGreaterThan(300)
})

test('a long history of many at once is decided', () => {
  const random = new Random(3)
  const operations: Operation<number>[] = []
  for (let at = 0; at < 4000; at++) {
    // Eight operations overlap at any time. Each one takes effect at its own moment.
    operations.push({
      from: at - random.below(4) - 0.5,
      until: at + random.below(4) + 0.5,
      apply: state => (state === at ? at + 1 : undefined),
    })
  }
  expect(linearizable(0, operations)).toBe('yes')
  expect(linearizable(1, operations)).toBe('no')
})

/** Whether any order explains the operations. Tries all orders, one after another. */
function someOrder(state: number, left: readonly Operation<number>[]): boolean {
  const must = left.filter(({ until }) => until !== undefined)
  if (must.length === 0) return true
  const firstEnd = Math.min(...must.map(({ until }) => until!))
  return left.some((operation, index) => {
    if (operation.from > firstEnd) return false
    const next = operation.apply(state)
    return next !== undefined && someOrder(next, left.toSpliced(index, 1))
  })
}
