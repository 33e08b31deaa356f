import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { deadLinks } from '../../scripts/site-links.mjs'
import { entries } from '../../scripts/typedoc-entries.mjs'
import { pages, root } from './pages.js'

const site = join(root, 'build-docs/site')
/** The first page of the site. */
const front = 'docs/index.md'
const timeLimit = 600_000

describe('the site of the docs', () => {
  beforeAll(() => {
    // This script fails on a dead link, and on each warning of TypeDoc.
    execFileSync(process.execPath, ['scripts/site.mjs'], { cwd: root, timeout: timeLimit })
  }, timeLimit)

  const read = (page: string): string => readFileSync(join(site, page), 'utf8')

  test('has each page, and begins with the page for a first look', () => {
    const missing = pages()
      .map(page => (page === front ? 'index.html' : page.replace(/\.md$/, '.html')))
      .filter(page => !existsSync(join(site, page)))
    expect(missing).toEqual([])
    expect(read('index.html')).toContain('Locks, rate limits and shared state')
  })

  test('leads to each page from its menu', () => {
    const menu = read('README.html')
    const missing = pages().filter(
      page => page !== front && !menu.includes(`href="/${page.replace(/md$/, 'html')}"`),
    )
    expect(missing).toEqual([])
  })

  test('has the reference of each entry of the package', () => {
    const missing = [...entries.values()].filter(name => !existsSync(join(site, 'api', name, 'index.html')))
    expect(missing).toEqual([])
    expect(read('api/signalbox/functions/open.html')).toContain('Promise')
  })

  test('shows the files that pages link to', () => {
    expect(read('docs/architecture.html')).toContain('href="./../source/src/core/lock.ts.html"')
    expect(read('source/src/core/lock.ts.html')).toContain('class')
  })

  test('has an index of pages and API for its search', () => {
    const folder = join(site, 'assets/chunks')
    const indexes = readdirSync(folder).filter(name => name.startsWith('@localSearchIndex'))
    expect(indexes).toHaveLength(1)
    const index = readFileSync(join(folder, indexes[0]!), 'utf8')
    for (const id of ['/docs/redis.html', '/api/signalbox/functions/open.html']) expect(index).toContain(id)
    expect(index).not.toContain('/source/')
  })

  test('asks no other server', () => {
    const html = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter(name =>
      name.endsWith('.html'),
    )
    const asking = html.filter(page =>
      /<(script|img|link|iframe)\b[^>]*\b(src|href)="https?:/.test(read(page)),
    )
    expect(asking).toEqual([])
  })
})

test('links to a missing page, a missing anchor and a missing picture are dead', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-site-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'a'))
  writeFileSync(
    join(folder, 'index.html'),
    '<a href="/base/a/#here"></a><a href="https://example.org/none"></a>',
  )
  writeFileSync(
    join(folder, 'a/index.html'),
    '<h1 id="here"></h1><a href="#there"></a><a href="../b.html"></a><img src="/base/c.svg"><a href="/a/"></a>',
  )
  expect(deadLinks(folder, '/base/')).toEqual(
    ['#there', '../b.html', '/base/c.svg', '/a/'].map(target => `a/index.html: ${target}`),
  )
})
