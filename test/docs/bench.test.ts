import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { chart } from '../../bench/chart.js'
import { writeReport } from '../../bench/report-files.js'
import type { Report } from '../../bench/report.js'
import { markdown } from '../../bench/tables.js'
import { TABLE, withTables } from '../../scripts/bench-tables.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = readdirSync(`${root}docs`).filter(name => name.endsWith('.md'))
const reports = readdirSync(`${root}bench/reports`).flatMap(file => /^(.*)\.json$/.exec(file)?.[1] ?? [])

const tables = pages.flatMap(page =>
  [...readFileSync(`${root}docs/${page}`, 'utf8').matchAll(TABLE)].map(([, name, text]) => ({
    page,
    name: name!,
    text: text!.trim(),
  })),
)

describe('figures in the pages', () => {
  test('are there, of every committed report', () => {
    expect(tables.map(({ name }) => name).sort()).toEqual([...reports].sort())
    expect(reports).toEqual(
      expect.arrayContaining([
        'costs',
        'file',
        'hazelcast',
        'limits',
        'memory',
        'postgres',
        'redis',
        'trains',
        'zookeeper',
      ]),
    )
  })

  test.each(pages)('of %s are as scripts/bench-tables.mjs writes them', page => {
    const text = readFileSync(`${root}docs/${page}`, 'utf8')
    expect(withTables(text, name => markdown(reportOf(name)))).toBe(text)
  })

  test('a report and its picture are written as they are committed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-reports-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    await writeReport(join(folder, 'new'), 'memory', reportOf('memory'))
    for (const file of ['memory.json', 'memory.svg'])
      expect(readFileSync(join(folder, 'new', file), 'utf8'), file).toBe(
        readFileSync(`${root}bench/reports/${file}`, 'utf8'),
      )
  })

  test.each(reports)('drawn beside the committed report %s are its own', async name => {
    expect(readFileSync(`${root}bench/reports/${name}.svg`, 'utf8')).toBe(await chart(reportOf(name)))
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
