import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { page, withTables } from '../../scripts/chaos-tables.mjs'

test('docs/chaos.md has the figures of the committed reports; else run scripts/chaos-tables.mjs', () => {
  const text = readFileSync(page, 'utf8')
  expect(withTables(text)).toBe(text)
})
