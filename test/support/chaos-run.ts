import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { History } from '../../apps/chaos/history.js'
import type { Report } from '../../apps/chaos/report.js'
import { CommandPlace } from '../integration/command-line.js'

/** How a run of the fault harness ended, and what it wrote. */
interface ChaosEnd {
  readonly status: number | null
  readonly stderr: string
  readonly report: Report
  readonly history: History
  /** What `--picture picture.svg` drew. */
  readonly picture: string | undefined
  /** Broken promises other than that everything continues in time, which a busy machine breaks by itself. */
  readonly findings: readonly string[]
}

/** Runs `signalbox chaos` in a folder of its own, and gives what it reported. */
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
