import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommanderError } from 'commander'
import { chart } from './chart.js'
import { thisMachine, versionsOf } from './machine.js'
import { readOptions, type Options } from './options.js'
import { parts, works } from './registry.js'
import { formatted, readReport, readReports, writeReport } from './report-files.js'
import { workReport, type Report, type WorkReport } from './report.js'
import { measured } from './rounds.js'
import { summaries } from './summary.js'
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
  const { table, chart: drawn, summaries: folder } = options
  if (table !== undefined) process.stdout.write(markdown(await readReport(table)))
  else if (drawn !== undefined) process.stdout.write(await chart(await readReport(drawn)))
  else if (folder !== undefined) process.stdout.write(JSON.stringify(summaries(await readReports(folder))))
  else await bench(options, args)
}

async function bench(options: Options, args: readonly string[]): Promise<void> {
  const { only, json, reports } = options
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  try {
    const machine = await thisMachine(folder)
    const report = (of: readonly string[], results: readonly WorkReport[]): Report => ({
      command: ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' '),
      date: new Date().toISOString(),
      machine: { ...machine, versions: versionsOf(of) },
      rows: results.flatMap(({ rows }) => rows),
      ratios: results.flatMap(({ ratios }) => ratios),
      targets: results.flatMap(({ targets }) => targets),
    })
    const measuredParts = parts.filter(part => only?.includes(part) ?? true)
    const all: WorkReport[] = []
    for (const part of measuredParts) {
      const results = await measurePart(part, options, folder)
      all.push(...results)
      // Writes each part at once, so that a failure in a later one loses nothing.
      if (json === undefined) await writeReport(reports, part, report([part], results))
    }
    if (json !== undefined) await writeFile(json, await formatted(report(measuredParts, all)))
    tellBroken(all)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function measurePart(
  part: string,
  { rounds, seconds }: Options,
  folder: string,
): Promise<readonly WorkReport[]> {
  const results: WorkReport[] = []
  for (const [index, work] of works.entries()) {
    if (work.part !== part) continue
    const own = join(folder, String(index))
    await mkdir(own)
    const samples = await measured(work, { rounds, seconds }, own, progress)
    progress('')
    const result = workReport(work, samples)
    process.stdout.write(`${workText(result)}\n`)
    results.push(result)
  }
  return results
}

function tellBroken(results: readonly WorkReport[]): void {
  const broken = results.flatMap(({ rows }) => rows.filter(row => row.broken !== undefined))
  if (broken.length === 0) return
  process.exitCode = 1
  const lines = broken.map(row => `  ${row.work}: ${row.subject}: ${row.broken!}\n`)
  process.stderr.write(
    `these subjects failed their checks, so the report has no figures of them:\n${lines.join('')}`,
  )
}

/** Shows the progress in one line, on a terminal only. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
}

await main(process.argv.slice(2))
