import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = readdirSync(`${root}docs`).filter(name => name.endsWith('.md'))
const reports = readdirSync(`${root}bench/reports`).flatMap(file => /^(.*)\.json$/.exec(file)?.[1] ?? [])
/** A table of a page: `<!-- bench: NAME -->`, the table, `<!-- /bench -->`. */
const TABLE = /<!-- bench: (\w+) -->\n([\s\S]*?)<!-- \/bench -->/g

const tables = pages.flatMap(page =>
  [...readFileSync(`${root}docs/${page}`, 'utf8').matchAll(TABLE)].map(([, name, text]) => ({
    page,
    name: name!,
    text: text!.trim(),
  })),
)

describe('figures in the pages', () => {
  test('are there', () => {
    expect(tables.map(({ name }) => name).sort()).toEqual([
      'costs',
      'file',
      'hazelcast',
      'limits',
      'memory',
      'redis',
      'trains',
      'zookeeper',
    ])
  })

  test.each(reports)('drawn beside the committed report %s are its own', name => {
    const argv = ['build/bench/main.js', '--chart', `bench/reports/${name}.json`]
    const made = execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8' })
    expect(readFileSync(`${root}bench/reports/${name}.svg`, 'utf8')).toBe(made)
  })

  test.each(tables)('of $page are those of the committed report $name', ({ name, text }) => {
    const argv = ['build/bench/main.js', '--table', `bench/reports/${name}.json`]
    const made = execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8' })
    expect(text).toBe(made.trim())
  })
})
