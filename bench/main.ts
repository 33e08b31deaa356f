import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommanderError } from 'commander'
import { chart } from './chart.js'
import { thisMachine } from './machine.js'
import { readOptions, type Options } from './options.js'
import { parts, works } from './registry.js'
import { workReport, type Report, type WorkReport } from './report.js'
import { measured } from './rounds.js'
import { markdown, workText } from './tables.js'

async function main(args: readonly string[]): Promise<void> {
  let options: Options
  try {
    options = readOptions(args)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    process.exitCode = error.exitCode
    return
  }
  const { table, chart: drawn } = options
  if (table !== undefined) process.stdout.write(markdown(await readReport(table)))
  else if (drawn !== undefined) process.stdout.write(await chart(await readReport(drawn)))
  else await bench(options, args)
}

async function readReport(file: string): Promise<Report> {
  return JSON.parse(await readFile(file, 'utf8')) as Report
}

async function bench({ only, rounds, seconds, json }: Options, args: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  try {
    const machine = await thisMachine(folder, only ?? parts)
    const results: WorkReport[] = []
    for (const [index, work] of works.entries()) {
      if (only && !only.includes(work.part)) continue
      const own = join(folder, String(index))
      await mkdir(own)
      const samples = await measured(work, { rounds, seconds }, own, progress)
      progress('')
      const result = workReport(work, samples)
      process.stdout.write(`${workText(result)}\n`)
      results.push(result)
    }
    const broken = results.flatMap(({ rows }) => rows.filter(row => row.broken !== undefined))
    if (broken.length > 0) {
      process.exitCode = 1
      const lines = broken.map(row => `  ${row.work}: ${row.subject}: ${row.broken!}\n`)
      process.stderr.write(`What did not do what it is for has no figures:\n${lines.join('')}`)
    }
    if (json === undefined) return
    const report: Report = {
      command: ['npm run bench --', ...args].join(' '),
      date: new Date().toISOString(),
      machine,
      rows: results.flatMap(({ rows }) => rows),
      ratios: results.flatMap(({ ratios }) => ratios),
      targets: results.flatMap(({ targets }) => targets),
    }
    await writeFile(json, await formatted(report))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The line that says what goes on, on a terminal only. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
}

/** As the format check wants it, because reports are kept beside the sources. */
async function formatted(report: Report): Promise<string> {
  const { format, resolveConfig } = await import('prettier')
  return format(JSON.stringify(report), {
    ...(await resolveConfig('bench/reports/report.json')),
    parser: 'json',
  })
}

await main(process.argv.slice(2))
