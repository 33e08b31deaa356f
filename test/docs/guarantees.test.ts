import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { kinds, pages, withGuarantees } from '../../scripts/guarantees.mjs'

// On other systems an engine may guarantee less. The page describes these cases in prose.
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
