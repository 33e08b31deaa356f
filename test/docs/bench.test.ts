import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { chart } from '../../bench/chart.js'
import { writeReport } from '../../bench/report-files.js'
import type { Report } from '../../bench/report.js'
import { summaries } from '../../bench/summary.js'
import { markdown } from '../../bench/tables.js'
import { reportFolder, reportPage, summaryPage, TABLE, withTables } from '../../scripts/bench-tables.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const reports = readdirSync(`${root}bench/reports`).flatMap(file => /^(.*)\.json$/.exec(file)?.[1] ?? [])

const page = readFileSync(`${root}${summaryPage}`, 'utf8')
const summary = summaries(Object.fromEntries(reports.map(name => [name, reportOf(name)])))

describe('figures in the pages', () => {
  test('are there, of every committed report', () => {
    for (const name of reports) expect(page).toContain(`](../${reportFolder}/${name}.md)`)
    expect([...page.matchAll(TABLE)].map(([, name]) => name)).toEqual(Object.keys(summary))
    expect(reports).toEqual(
      expect.arrayContaining([
        'costs',
        'file',
        'growth-files',
        'growth-hazelcast',
        'growth-postgres',
        'growth-redis',
        'growth-zookeeper',
        'hazelcast',
        'limits',
        'lockfile',
        'memory',
        'postgres',
        'redis',
        'trains',
        'zookeeper',
      ]),
    )
  })

  test('of the summary are as scripts/bench-tables.mjs writes them', () => {
    expect(withTables(page, name => summary[name]!)).toBe(page)
  })

  test('of the summary are all in its tables', () => {
    const prose = page.replaceAll(TABLE, '')
    expect(prose.match(/\d[.,]\d|\d\s*(?:ms|µs|s|times)\b/g)).toBeNull()
  })

  test.each(reports)('of the page about the report %s are as scripts/bench-tables.mjs writes them', name => {
    const text = readFileSync(`${root}${reportFolder}/${name}.md`, 'utf8')
    expect(text).toBe(reportPage(name, markdown(reportOf(name))))
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

  test.each(reports)('drawn from the committed report %s are up to date', async name => {
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

  test('can be summed up by the command', () => {
    const argv = ['build/bench/main.js', '--summaries', reportFolder]
    const made = execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8' })
    expect(JSON.parse(made)).toEqual(summary)
  })
})

function reportOf(name: string): Report {
  return JSON.parse(readFileSync(`${root}bench/reports/${name}.json`, 'utf8')) as Report
}
