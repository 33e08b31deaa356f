import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { chart } from '../../bench/chart.js'
import type { Report } from '../../bench/report.js'
import { markdown } from '../../bench/tables.js'

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

  test.each(reports)('drawn beside the committed report %s are its own', async name => {
    expect(readFileSync(`${root}bench/reports/${name}.svg`, 'utf8')).toBe(await chart(reportOf(name)))
  })

  test.each(tables)('of $page are those of the committed report $name', ({ name, text }) => {
    expect(text).toBe(markdown(reportOf(name)).trim())
  })

  test.each([
    ['--table', (report: Report) => markdown(report)],
    ['--chart', (report: Report) => chart(report)],
  ])('can be made by the command, with %s', async (option, make) => {
    const argv = ['build/bench/main.js', option, 'bench/reports/memory.json']
    const made = execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8' })
    expect(made).toBe(await make(reportOf('memory')))
  })
})

function reportOf(name: string): Report {
  return JSON.parse(readFileSync(`${root}bench/reports/${name}.json`, 'utf8')) as Report
}
