import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chart } from './chart.js'
import type { Report } from './report.js'

/** Writes a report as JSON and as a picture beside it. @param folder is made where there is none. */
export async function writeReport(folder: string, name: string, report: Report): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${name}.json`), await formatted(report))
  await writeFile(join(folder, `${name}.svg`), await chart(report))
}

/** As JSON that the format check is content with, because reports are kept beside the sources. */
export async function formatted(report: Report): Promise<string> {
  const { format, resolveConfig } = await import('prettier')
  return format(JSON.stringify(report), {
    ...(await resolveConfig('bench/reports/report.json')),
    parser: 'json',
  })
}
