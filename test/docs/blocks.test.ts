import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findBlocks } from './blocks.js'
import { root } from './pages.js'
import { compileBlocks } from './typescript-blocks.js'

const unsaid = { setup: undefined, output: undefined, testedBy: undefined }

describe('findBlocks', () => {
  test('finds blocks with their line, language and code, in lists and with longer fences', () => {
    const page = [
      '# Title',
      '',
      '```ts',
      'const a = 1',
      '```',
      '',
      '1. step',
      '   ````sh',
      '   echo ```',
      '     x',
      '   ````',
      '~~~',
      'y',
      '~~~',
    ]
    expect(findBlocks('page.md', page.join('\n'))).toEqual([
      { page: 'page.md', line: 4, language: 'ts', code: 'const a = 1', ...unsaid },
      {
        page: 'page.md',
        line: 9,
        language: 'sh',
        code: 'echo ```\n  x',
        ...unsaid,
      },
      { page: 'page.md', line: 13, language: '', code: 'y', ...unsaid },
    ])
  })

  test('comments belong to the next block only', () => {
    const comments = '<!-- setup: file test/docs/setup/db.ts -->\n<!-- output: ^a b\\n$ -->'
    const page = `${comments}\n\n\`\`\`ts\na\n\`\`\`\n\`\`\`ts\nb\n\`\`\`\n`
    expect(findBlocks('page.md', page).map(({ setup, output }) => [setup, output])).toEqual([
      ['test/docs/setup/db.ts', '^a b\\n$'],
      [undefined, undefined],
    ])
    expect(() => findBlocks('page.md', `<!-- output: a -->\n${comments}\n`)).toThrow('page.md:3')
    const tested = '<!-- tested by: file test/interop/a.test.ts -->'
    expect(findBlocks('page.md', `${tested}\n\`\`\`ts\na\n\`\`\`\n`)[0]?.testedBy).toBe(
      'test/interop/a.test.ts',
    )
  })

  test('a setup comment without a block, and a block without an end, are errors', () => {
    expect(() => findBlocks('page.md', '<!-- setup: file a.ts -->\ntext\n')).toThrow('page.md:2')
    expect(() => findBlocks('page.md', '<!-- setup: file a.ts -->\n')).toThrow('at its end')
    expect(() => findBlocks('page.md', 'a\n```ts\nb\n')).toThrow('page.md:2')
  })
})

test('a block with wrong types is reported at its line of the page', () => {
  const block = {
    page: 'page.md',
    line: 10,
    language: 'ts',
    code: "const a: number = 1\nconst b: string = a\nimport { nothing } from 'signalbox'",
    ...unsaid,
  }
  const { problems } = compileBlocks([block], join(root, 'build-docs/types')).get(block)!
  expect(problems.map(problem => problem.slice(0, 19))).toEqual([
    'page.md:11: TS2322:',
    'page.md:12: TS2305:',
  ])
})
