import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { History } from '../../apps/chaos/history.js'
import { picture } from '../../apps/chaos/picture.js'
import { page, withTables } from '../../scripts/chaos-tables.mjs'

test('the page of the committed reports has their figures; else run scripts/chaos-tables.mjs', () => {
  const text = readFileSync(page, 'utf8')
  expect(withTables(text)).toBe(text)
})

test('docs/chaos.svg is what signalbox chaos draws of the history that the page names', async () => {
  const read = (path: string): string =>
    readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
  const drawn = await picture(JSON.parse(read('test/fixtures/chaos/good-faults.json')) as History)
  expect(read('docs/chaos.svg')).toBe(drawn)
})
