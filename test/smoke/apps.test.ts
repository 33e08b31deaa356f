import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'
import type { Figures } from '../../apps/limits/figures.js'
import { chaosRun } from '../support/chaos-run.js'
import { builtProgram } from '../support/built-program.js'
import { runProgram } from '../support/run-program.js'
import { faultless, runTracker } from '../support/trains/run-tracker.js'

/** Maximum duration of a program, in milliseconds. After that it is killed. */
const timeLimit = 50_000

test('the train tracker ends as a serial run although workers are killed', async () => {
  const folder = reapedFolder('smoke')
  const argv = ['--processes', '2', '--days', '2', '--kill', '2']
  const { status, report } = await runTracker(folder, `file:${folder}/state`, argv, { limit: timeLimit })
  expect(report).toMatchObject(faultless(2))
  expect(report.kills).toHaveLength(2)
  expect(status).toBe(0)
})

test('the mutex demo shows the tasks one after another, and a write of an old holder refused', async () => {
  const argv = [builtProgram('../dist/apps/mutex/main.js'), '--engine', 'memory:']
  const { stdout } = await runProgram(process.execPath, argv, { cwd: reapedFolder('smoke'), timeLimit })
  const locked = stdout.slice(stdout.indexOf('locked part start'), stdout.indexOf('locked part finish'))
  const started = [...locked.matchAll(/^process start (\d+)$/gm)].map(match => match[1]!)
  expect(new Set(started).size).toBe(10)
  const inTurn = started.flatMap(task => [`process start ${task}`, `process end ${task}`])
  expect(locked.match(/^process (start|end) \d+$/gm)).toEqual(inTurn)
  expect(stdout).toContain('rejected by the fence')
})

test('the comparison of limits counts at its service what goes through a limiter, and draws it', async () => {
  const folder = reapedFolder('smoke')
  const [json, picture] = [join(folder, 'report.json'), join(folder, 'picture.svg')]
  const run = ['--scenario', 'calm', '--only', 'signalbox sliding', '--seconds', '3']
  const argv = [builtProgram('../dist/apps/limits/main.js'), ...run, '--json', json, '--picture', picture]
  await runProgram(process.execPath, argv, { cwd: folder, timeLimit })
  const { strategies } = JSON.parse(readFileSync(json, 'utf8')) as {
    readonly strategies: readonly Figures[]
  }
  expect(strategies.map(({ name }) => name)).toEqual(['signalbox sliding'])
  // More calls than the limit allows in one second.
  expect(strategies[0]!.calls).toBeGreaterThan(20)
  expect(readFileSync(picture, 'utf8')).toMatch(/^<svg /)
})

test(
  'the fault harness disturbs clients over files, and finds every promise kept',
  { timeout: 150_000 },
  async () => {
    const short = ['--lease', '500', '--processes', '3', '--faults', '3', '--seed', '23']
    const { report, findings } = await chaosRun('--engine', 'file:./locks', ...short)
    expect(findings).toEqual([])
    expect(report).toMatchObject({ engine: 'file', faults: 3, undecided: 0 })
    expect(Math.min(report.grants, report.transfers.applied, report.storeCalls)).toBeGreaterThan(10)
    expect(report.orders).toBeGreaterThan(50)
  },
)
