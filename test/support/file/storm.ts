import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { systemClock } from '../../../src/base/clock.js'
import type { Box } from '../../../src/index.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { builtProgram } from '../built-program.js'
import type { StormReport } from './storm.process.js'

export interface StormOptions {
  /** A box that acquires another key meanwhile. */
  readonly box: Box
  readonly folder: string
  readonly processes: number
  /** Number of tasks in each process. */
  readonly tasks: number
  /** Maximum wait of a task for the key, in milliseconds. */
  readonly wait: number
  readonly duration: number
}

/** The outcome of processes full of tasks that all wanted one key for a moment. Times in milliseconds. */
export interface StormResult extends StormReport {
  /** The longest wait of another box for another key, and the number of times that it had that key. */
  readonly longestWait: number
  readonly visits: number
  /** Time that the processes needed to end. */
  readonly ending: number
}

/** Lets many tasks of several processes compete for one key, each for a moment, over and over. */
export async function storm(options: StormOptions): Promise<StormResult> {
  const { box, folder, processes, tasks, wait, duration } = options
  const children = Array.from({ length: processes }, (_, index) => {
    const argv = [folder, `process ${index}`, String(tasks), String(wait)]
    const child = spawn(process.execPath, [builtProgram('test/support/file/storm.process.js'), ...argv], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    return { child, output: text(child.stdout), ready: once(child.stdout, 'data'), end: once(child, 'exit') }
  })
  await Promise.all(children.map(({ ready }) => ready))
  let [longestWait, visits] = [0, 0]
  const end = systemClock.now() + duration
  while (systemClock.now() < end) {
    const asked = systemClock.now()
    const grant = await box.mutex('outside').acquire()
    longestWait = Math.max(longestWait, systemClock.now() - asked)
    visits++
    await grant.release()
    await pause(10)
  }
  const endingSince = systemClock.now()
  for (const { child } of children) child.stdin.end()
  await Promise.all(children.map(({ end }) => end))
  const ending = systemClock.now() - endingSince
  const reports = await Promise.all(
    children.map(async ({ output }) => JSON.parse((await output).split('\n')[1]!) as StormReport),
  )
  return {
    longestWait,
    visits,
    ending,
    served: reports.reduce((sum, { served }) => sum + served, 0),
    gaveUp: reports.reduce((sum, { gaveUp }) => sum + gaveUp, 0),
    latest: Math.max(...reports.map(({ latest }) => latest)),
  }
}
