import { expect, test } from 'vitest'
import { valueData, valueOf } from '../../../../src/engines/postgres/value-row.js'

test('a value is read as it was written', () => {
  const stored = { value: '{"a":"\\n"}', version: 7, watchers: new Map([['s', 100]]) }
  expect(valueOf(valueData(stored, 99))).toEqual(stored)
})

test('watchers that were not heard of for long are dropped, and a deleted value without watchers is empty', () => {
  const stored = { value: undefined, version: 7, watchers: new Map([['s', 100]]) }
  expect(valueOf(valueData(stored, 50)).watchers.size).toBe(1)
  expect(valueData(stored, 100)).toBe('')
  expect(valueOf('')).toEqual({ value: undefined, version: 0, watchers: new Map() })
})
