import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { History } from '../../apps/chaos/history.js'
import type { Report } from '../../apps/chaos/report.js'
import { CommandPlace } from '../integration/command-line.js'

/** The exit status and the output of a run of the fault harness. */
interface ChaosEnd {
  readonly status: number | null
  readonly stderr: string
  readonly report: Report
  readonly history: History
  /** The SVG of `--picture picture.svg`. */
  readonly picture: string | undefined
  /** Broken promises except P9, that everything continues in time, because a busy machine alone breaks it. */
  readonly findings: readonly string[]
}

/** Runs `signalbox chaos` in a folder of its own, and returns its results. */
export async function chaosRun(...args: readonly string[]): Promise<ChaosEnd> {
  await using place = new CommandPlace()
  const { status, stderr } = await place.signalbox(
    'chaos',
    '--json',
    'report.json',
    '--history',
    'history.json',
    ...args,
  )
  const read = (file: string): unknown => JSON.parse(readFileSync(join(place.folder, file), 'utf8'))
  const report = read('report.json') as Report
  const history = read('history.json') as History
  if (status !== (report.findings.length === 0 ? 0 : 1))
    throw new Error(`status ${String(status)} with ${report.findings.length} findings: ${stderr}`)
  const findings = report.findings.filter(({ promise }) => promise !== 'P9').map(({ message }) => message)
  const drawing = join(place.folder, 'picture.svg')
  const picture = existsSync(drawing) ? readFileSync(drawing, 'utf8') : undefined
  return { status, stderr, report, history, findings, picture }
}
