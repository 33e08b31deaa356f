import { spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'
import type { Report } from '../../apps/trains/report/report.js'
import { builtProgram } from '../support/built-program.js'

function started(cwd: string, stdio: StdioOptions, program: string, ...argv: readonly string[]) {
  const path = builtProgram(`../dist/apps/${program}.js`)
  return spawn(process.execPath, [path, ...argv], { cwd, stdio, timeout: 50_000 })
}

test.each([
  ['trains/main', [], 4],
  ['signalbox', ['trains'], 4],
  ['mutex/main', [], 1],
])('%s says that standard output is full', async (program, command, status) => {
  const cwd = reapedFolder('output')
  const full = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(full))
  const run = started(cwd, ['ignore', full, 'pipe'], program, ...command, '--engine', 'file:./state')
  const [said, ended] = await Promise.all([text(run.stderr!), once(run, 'exit')])
  expect(said).toMatch(/^error: can't write to standard output: ENOSPC.*\n$/)
  expect(ended).toEqual([status, null])
})

test('a run is reported even if its output and that of its workers have no reader', async () => {
  const cwd = reapedFolder('output')
  const argv = ['--engine', 'file:./state', '--days', '2', '--kill', '2', '--json', 'report.json']
  const run = started(cwd, ['ignore', 'pipe', 'pipe'], 'trains/main', ...argv)
  run.stdout!.destroy()
  run.stderr!.destroy()
  expect(await once(run, 'exit')).toEqual([0, null])
  const report = JSON.parse(readFileSync(join(cwd, 'report.json'), 'utf8')) as Report
  expect(report.kills).toHaveLength(2)
  expect(report.matchesSerial).toBe(true)
})

test('the mutex demo ends normally even if its output has no reader', async () => {
  const run = started(reapedFolder('output'), ['ignore', 'pipe', 'inherit'], 'mutex/main')
  run.stdout!.destroy()
  expect(await once(run, 'exit')).toEqual([0, null])
})
