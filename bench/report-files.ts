import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { FormatOptions } from 'oxfmt'
import { chart } from './chart.js'
import { packageFile } from './package.js'
import type { Report } from './report.js'

/** Writes a report as JSON and a picture of it. @param folder is created if missing. */
export async function writeReport(folder: string, name: string, report: Report): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${name}.json`), await formatted(report))
  await writeFile(join(folder, `${name}.svg`), await chart(report))
}

export async function readReport(file: string): Promise<Report> {
  return JSON.parse(await readFile(file, 'utf8')) as Report
}

/** Reads the reports of a folder, by their names. */
export async function readReports(folder: string): Promise<Record<string, Report>> {
  const files = (await readdir(folder)).filter(file => file.endsWith('.json'))
  const reports = files.map(
    async file => [basename(file, '.json'), await readReport(join(folder, file))] as const,
  )
  return Object.fromEntries(await Promise.all(reports))
}

/** Formats a report as JSON that passes the format check, because reports are kept next to the sources. */
export async function formatted(report: Report): Promise<string> {
  const { format } = await import('oxfmt')
  const options = JSON.parse(await readFile(packageFile('.oxfmtrc.json'), 'utf8')) as FormatOptions
  const { code } = await format('report.json', JSON.stringify(report), options)
  return code
}
