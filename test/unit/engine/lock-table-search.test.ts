import { expect, test } from 'vitest'
import { ALL_CLAIMS, searchTable } from '../../support/table-search.js'

test('two requests for two keys break no promise of the lock table in any state', { timeout: 60_000 }, () => {
  const searched = searchTable({ claims: ['X.', 'XX'], requests: 2, maxDepth: Infinity })
  console.info(searched)
  expect(searched.isComplete).toBe(true)
})

test('three requests break no promise of the lock table within three operations', { timeout: 60_000 }, () => {
  const searched = searchTable({ claims: ALL_CLAIMS, requests: 3, maxDepth: 3 })
  console.info(searched)
  expect(searched.transitions).toBeGreaterThan(4000)
})
