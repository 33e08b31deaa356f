import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { slug } from '../../scripts/site-links.mjs'
import { pages, root } from './pages.js'

/** Matches `[text](target)`. */
const link = /\[([^\]]+)\]\(([^)\s]+)\)/g

interface Link {
  readonly page: string
  readonly text: string
  readonly target: string
}

function linksOf(page: string): Link[] {
  const prose = readFileSync(join(root, page), 'utf8').replace(/^ *(```|~~~).*?^ *\1/gms, '')
  return [...prose.matchAll(link)]
    .map(([, text, target]) => ({ page, text: text!.replaceAll(/\s+/g, ' '), target: target! }))
    .filter(({ target }) => !/^[a-z]+:/.test(target))
}

/** Returns a message about an error in a link, or undefined. */
function problem({ page, text, target }: Link): string | undefined {
  const [path, anchor] = target.split('#', 2) as [string, string?]
  const file = path === '' ? join(root, page) : join(root, dirname(page), path)
  if (!existsSync(file)) return `${page}: there is no ${target}`
  const content = path.endsWith('/') ? '' : readFileSync(file, 'utf8')
  if (anchor !== undefined && !anchorsOf(content).has(anchor))
    return `${page}: ${path} has no heading #${anchor}`
  // Text that a page quotes from a test, such as its name, must be in that test.
  const quoted = /^`(.+)`$/.exec(text)?.[1]
  if (
    quoted !== undefined &&
    /\b(test|packages\/conformance\/src)\/.*\.ts$/.test(path) &&
    !content.includes(quoted)
  )
    return `${page}: ${path} has no \`${quoted}\``
  return undefined
}

/** Returns the anchors of a page's headings. */
function anchorsOf(markdown: string): Set<string> {
  return new Set([...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => slug(heading!)))
}

test('every link within the documentation leads somewhere, and tests are quoted by their names', () => {
  const links = pages().flatMap(linksOf)
  expect(links.length).toBeGreaterThan(20)
  expect(links.map(problem).filter(Boolean)).toEqual([])
})
