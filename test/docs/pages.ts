import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findBlocks, type Block } from './blocks.js'

/** Path of the checkout. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** The first page for readers. */
export const readme = 'README.md'

/**
 * Returns the pages for readers, relative to the checkout: pages about the project and the packages, and all below
 * docs/.
 */
export function pages(): string[] {
  const docs = join(root, 'docs')
  const below = existsSync(docs)
    ? readdirSync(docs, { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.md'))
        .map(name => join('docs', name))
    : []
  const packages = readdirSync(join(root, 'packages')).map(name => `packages/${name}/README.md`)
  return [readme, 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', ...packages, ...below.sort()].filter(
    page => existsSync(join(root, page)),
  )
}

/** Returns all code blocks of the pages for readers. */
export function readAllBlocks(): Block[] {
  return pages().flatMap(page => findBlocks(page, readFileSync(join(root, page), 'utf8')))
}
