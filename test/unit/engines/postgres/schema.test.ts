import { expect, test } from 'vitest'
import {
  SCHEMA_REVISION,
  SCHEMA_VERSION,
  schemaHash,
  stampOf,
  useOf,
} from '../../../../src/engines/postgres/schema.js'

test('the revision of the schema increases with each change of its SQL', () => {
  // If this fails, increase SCHEMA_REVISION, and update both values here. Boxes in use replace functions of lower
  // revisions.
  expect({ revision: SCHEMA_REVISION, hash: schemaHash() }).toEqual({
    revision: 17,
    hash: '6bb8050a8437521b',
  })
})

test('the higher version of the layout and the higher revision of the functions stay', () => {
  const comment = (revision: number, hash = schemaHash()): string => `revision ${revision}, ${hash}`
  const cases = [
    [0, null, 'replace'],
    [SCHEMA_VERSION - 1, comment(SCHEMA_REVISION + 1), 'replace'],
    [SCHEMA_VERSION + 1, comment(0), 'refuse'],
    [SCHEMA_VERSION, null, 'replace'],
    [SCHEMA_VERSION, 'a comment of somebody else', 'replace'],
    [SCHEMA_VERSION, comment(SCHEMA_REVISION - 1), 'replace'],
    [SCHEMA_VERSION, comment(SCHEMA_REVISION, '0123'), 'replace'],
    [SCHEMA_VERSION, comment(SCHEMA_REVISION), 'use'],
    [SCHEMA_VERSION, comment(SCHEMA_REVISION + 1, '0123'), 'use'],
  ] as const
  for (const [version, text, use] of cases)
    expect([version, text, useOf(stampOf(version, text))]).toEqual([version, text, use])
})
