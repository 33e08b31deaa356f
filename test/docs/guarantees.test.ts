import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { kinds, pages, withGuarantees } from '../../scripts/guarantees.mjs'

// Elsewhere an engine may promise less, which the page says in words.
test.runIf(process.platform === 'linux')(
  'the pages say of each engine what its boxes say; else run scripts/guarantees.mjs',
  async () => {
    const boxes = await kinds()
    for (const { path, block } of pages) {
      const text = readFileSync(path, 'utf8')
      expect(withGuarantees(text, block, boxes)).toBe(text)
    }
  },
)
