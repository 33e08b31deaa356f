import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findBlocks, type Block } from './blocks.js'

/** The checkout. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Every code block of the pages for readers: README.md, CONTRIBUTING.md and all below docs/. */
export function readAllBlocks(): Block[] {
  const docs = join(root, 'docs')
  const pages = existsSync(docs)
    ? readdirSync(docs, { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.md'))
        .map(name => join('docs', name))
    : []
  return ['README.md', 'CONTRIBUTING.md', ...pages.sort()]
    .filter(page => existsSync(join(root, page)))
    .flatMap(page => findBlocks(page, readFileSync(join(root, page), 'utf8')))
}
