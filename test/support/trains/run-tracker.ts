import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Report } from '../../../apps/trains/report/report.js'

/** Path of the tracker program. */
export const trackerProgram = fileURLToPath(new URL('../../../dist/apps/trains/main.js', import.meta.url))

/** One day of the bundled timetable. */
export const DAY = { messages: 3321, created: 218, moved: 2885, deleted: 218 }
/** Returns the report of a number of days of it without faults. */
export function faultless(days: number): Partial<Report> {
  return {
    messages: days * DAY.messages,
    created: days * DAY.created,
    moved: days * DAY.moved,
    deleted: days * DAY.deleted,
    ignored: 0,
    deadLettered: 0,
    matchesSerial: true,
  }
}

/** Maximum duration of a run, unless a test has another limit, in milliseconds. After that, the run is killed. */
export const TIME_LIMIT = 120_000

interface Ended {
  readonly status: number | null
  readonly output: string
  readonly report: Report
}

/** Runs the tracker to its end. `interrupt` sends it a Ctrl-C when it first reports its progress. */
export function runTracker(
  folder: string,
  engine: string,
  argv: readonly string[],
  { interrupt = false, limit = TIME_LIMIT } = {},
): Promise<Ended> {
  const json = join(folder, 'report.json')
  rmSync(json, { force: true })
  const all = [trackerProgram, '--engine', engine, '--json', json, ...argv]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, all, { cwd: folder, timeout: limit, killSignal: 'SIGKILL' })
    let output = ''
    let isInterrupted = false
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (isInterrupted || !interrupt || !/\d messages, \d+\/s/.test(output)) return
        isInterrupted = true
        child.kill('SIGINT')
      })
    }
    child.stdin.end()
    child.on('error', reject)
    child.on('close', status => {
      try {
        resolve({ status, output, report: JSON.parse(readFileSync(json, 'utf8')) as Report })
      } catch {
        reject(new Error(`the tracker ended with status ${String(status)} and left no report:\n${output}`))
      }
    })
  })
}
