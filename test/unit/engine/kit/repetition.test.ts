import { describe, expect, test } from 'vitest'
import type { Commit, Operation } from '../../../../src/engine/contract.js'
import { mayRepeat, showsOutcome } from '../../../../src/engine/kit/repetition.js'

const request = {
  id: 'box/1',
  session: 'box',
  claims: [{ key: 'a', mode: 'exclusive' }],
  label: undefined,
} as const
const put: Commit = {
  type: 'commit',
  guard: undefined,
  expect: [],
  writes: [{ key: 's/a', value: '1' }],
  record: [],
  retention: 1000,
  release: false,
}

describe('an operation whose reply was lost is repeated', () => {
  test('if it is about a request, or changes nothing', () => {
    const operations: Operation[] = [
      { type: 'enqueue', request, lease: 1000, wait: 0 },
      { type: 'release', request, number: 1 },
      { type: 'read', keys: ['s/a'], ids: [] },
    ]
    expect(operations.map(mayRepeat)).toEqual([true, true, true])
  })

  test('if it writes only values of the versions that it expects', () => {
    expect(mayRepeat(put)).toBe(false)
    expect(mayRepeat({ ...put, expect: [{ key: 's/b', version: 1 }] })).toBe(false)
    expect(mayRepeat({ ...put, expect: [{ key: 's/a', version: 1 }] })).toBe(true)
    expect(mayRepeat({ ...put, expect: [{ key: 's/a', version: 0 }] })).toBe(false)
    expect(mayRepeat({ ...put, guard: { request, number: 1 } })).toBe(false)
  })
})

describe('the reply to a repetition', () => {
  const granted = { request, number: 1 }
  const terms = { lease: 1000, wait: 0 }
  const release: Operation = { type: 'release', ...granted }
  const extend: Operation = { type: 'extendOrYield', ...granted, next: request, ...terms }
  const revoke: Operation = { type: 'revoke', session: 'box' }
  const conflict = { state: 'conflict', key: 's/a', found: { value: '1', version: 2 } } as const

  test.each<[Operation, unknown]>([
    [release, false],
    [revoke, 0],
    [extend, { state: 'gone' }],
    [put, conflict],
  ])(
    'to a $type that finds nothing to do does not show whether the first was applied',
    (operation, outcome) => {
      expect(showsOutcome(operation, outcome)).toBe(false)
    },
  )

  test.each<[Operation, unknown]>([
    [release, true],
    [revoke, 1],
    [extend, { state: 'held', id: 'box/1', number: 2 }],
    [put, { state: 'committed', versions: [2] }],
    [{ type: 'renew', ...granted, lease: 1000 }, false],
    [{ type: 'enqueue', request, ...terms }, { state: 'busy' }],
  ])('to a $type is the outcome', (operation, outcome) => {
    expect(showsOutcome(operation, outcome)).toBe(true)
  })
})
