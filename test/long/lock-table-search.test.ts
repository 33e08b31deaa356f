import { expect, test } from 'vitest'
import { ALL_CLAIMS, searchTable } from '../support/table-search.js'

test.each([
  { claims: ALL_CLAIMS, requests: 2, maxDepth: Infinity },
  { claims: ['X.'], requests: 3, maxDepth: Infinity },
])('$requests requests with the claims $claims break no promise of the lock table in any state', scope => {
  const searched = searchTable(scope)
  console.info(searched)
  expect(searched.isComplete).toBe(true)
})

test('three requests break no promise of the lock table within five operations', () => {
  const searched = searchTable({ claims: ALL_CLAIMS, requests: 3, maxDepth: 5 })
  console.info(searched)
  expect(searched.transitions).toBeGreaterThan(100_000)
})
