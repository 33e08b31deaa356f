import { expect, test } from 'vitest'
import { rowName } from '../../../../src/engines/postgres/names.js'

test('a row has the name of its key, or of its hash if the key is too long for an index', () => {
  expect(rowName('lock', 'invoice:42')).toBe('lock/invoice:42')
  const long = '\u{1F682}'.repeat(512)
  expect(rowName('lock', long)).toMatch(/^lock#[0-9a-f]{64}$/)
  expect(rowName('lock', long)).not.toBe(rowName('lock', `${long.slice(0, -2)}ab`))
  expect(rowName('value', 'a'.repeat(1000))).toBe(`value/${'a'.repeat(1000)}`)
})
