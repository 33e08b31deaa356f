import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { page, withGuarantees } from '../../scripts/guarantees.mjs'

// Elsewhere an engine may promise less, which the page tells in words.
test.runIf(process.platform === 'linux')(
  'docs/guarantees.md says of each engine what its boxes say; else run scripts/guarantees.mjs',
  async () => {
    const text = readFileSync(page, 'utf8')
    expect(await withGuarantees(text)).toBe(text)
  },
)
