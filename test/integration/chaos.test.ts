import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, test } from 'vitest'
import { check, type Verdict } from '../../apps/chaos/check/check.js'
import type { Report } from '../../apps/chaos/report.js'
import { faultLine } from '../../apps/chaos/text-report.js'
import { chaosRun } from '../support/chaos-run.js'
import { root } from '../docs/pages.js'
import { CommandPlace, program } from './command-line.js'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'

/** The shortest allowed lease and few clients, so that each fault takes about a second. */
const SHORT = ['--lease', '500', '--processes', '3', '--faults', '3']
const TIME_LIMIT = 150_000

/** Path of the command in the package. */
const builtProgram = 'dist/apps/signalbox.js'

/** Copies the built package next to its dependencies, and replaces one of them. @returns its folder */
function packageWith(name: string, version: string, code: string): string {
  const folder = reapedFolder('package')
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, name), { recursive: true })
  for (const other of readdirSync(join(root, 'node_modules')))
    if (other !== name) symlinkSync(join(root, 'node_modules', other), join(modules, other))
  writeFileSync(join(modules, name, 'package.json'), JSON.stringify({ name, version, main: 'index.js' }))
  writeFileSync(join(modules, name, 'index.js'), code)
  return folder
}

/** Returns the path of a committed history. */
function recorded(name: string): string {
  return join(root, 'test/fixtures/chaos', `${name}.json`)
}

/** Returns the kinds of the faults, without the measurements after them. */
function kindsOf({ recoveries }: Report): string[] {
  return [...new Set(recoveries.map(({ kind }) => kind.split(',')[0]!))].sort()
}

describe.concurrent('signalbox chaos', () => {
  test(
    'keeps the promises over files while clients are killed and stopped and their clocks jump',
    { timeout: TIME_LIMIT },
    async ({ expect }) => {
      const { report, history, findings, stderr, picture } = await chaosRun(
        '--engine',
        'file:./locks',
        '--picture',
        'picture.svg',
        '--verbose',
        '--seed',
        '23',
        ...SHORT,
      )
      expect(findings).toEqual([])
      expect(report).toMatchObject({ engine: 'file', faults: 3, seed: 23, undecided: 0 })
      expect(report.fenced).toMatchObject({ lost: 0 })
      expect(kindsOf(report)).toEqual(['kill', 'shift clock', 'stop'])
      // The history contains everything that was checked, and each fault was reported.
      expect(report).toMatchObject(JSON.parse(JSON.stringify(check(history))) as Verdict)
      expect(report.faultList).toEqual(history.faults)
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
      expect(report.version).toBe(version)
      expect(report.commit ?? '').toMatch(/^([0-9a-f]{12}\+?)?$/)
      expect(picture).toMatch(/^<svg /)
      for (const { kind } of history.faults) expect(picture).toContain(`>${kind}</text>`)
      expect(stderr).toBe(history.faults.map(faultLine).join(''))
      expect(stderr).toMatch(
        /^\d+\.\d s: (kill|stop|shift clock) of client [123](, which held \S+)?: recovered after [\d,]+ ms\n/,
      )
      expect(Math.min(report.grants, report.transfers.applied, report.storeCalls)).toBeGreaterThan(10)
    },
  )

  test(
    'ends in order when a terminal interrupts all of its process group',
    { timeout: TIME_LIMIT },
    async ({ expect }) => {
      const folder = reapedFolder('interrupted')
      const args = ['chaos', '--engine', `file:${folder}/locks`, '--lease', '20000', '--seconds', '600']
      const run = spawn(process.execPath, [program, ...args], {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const ended = once(run, 'close')
      let printed = ''
      for (const stream of [run.stdout, run.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (printed += text))
      // Waits until the command handles interrupts, and a client is about to be stopped for longer than a lease.
      while (!existsSync(`${folder}/locks`) && run.exitCode === null) await sleep(20)
      await sleep(2000)
      process.kill(-run.pid!, 'SIGINT')
      expect([...(await ended), printed]).toEqual([0, null, expect.stringMatching(/Every promise was kept/)])
    },
  )

  test.for([
    ['good-faults', 0, /Every promise was kept/],
    ['bad-money-moved', 1, /Broken:\nP13 anna has/],
  ] as const)(
    'checks the recorded history %s again: status %d',
    async ([name, expected, told], { expect }) => {
      await using place = new CommandPlace()
      const { status, stdout } = await place.signalbox('chaos', '--check', recorded(name))
      expect(stdout).toMatch(told)
      expect(status).toBe(expected)
    },
  )

  test('refuses to check a file that is not a history', async ({ expect }) => {
    await using place = new CommandPlace()
    const whole = JSON.parse(readFileSync(recorded('good-calm'), 'utf8')) as Record<string, unknown>
    const file = join(place.folder, 'history.json')
    for (const spoiled of ['{', '[]', 'null', { ...whole, calls: undefined }, { ...whole, requests: [{}] }]) {
      writeFileSync(file, typeof spoiled === 'string' ? spoiled : JSON.stringify(spoiled))
      const { status, stderr } = await place.signalbox('chaos', '--check', file)
      expect(stderr).toMatch(/is no history of a run/)
      expect(status).toBe(2)
    }
  })

  test.for([
    [['--check', 'missing.json'], /missing.json is no history of a run: ENOENT/],
    [['--check', 'one.json', '--engine', 'file:./locks'], /cannot be used with option '--engine/],
    [['--engine', 'memory:'], /memory: lives inside one process/],
    [['--engine', 'redis://127.0.0.1:1'], /can't reach/, 69],
    [['--engine', 'file:./locks', '--peer', 'redlock'], /needs --engine redis:/],
    [['--engine', 'file:./locks', '--server', 'true'], /files have no server/],
    [['--faults', 'many'], /must be an integer/],
    [['--engine', 'file:./locks', '--json', '/dev/null/report.json'], /can't write .*ENOTDIR/],
    [['--engine', 'file:./locks', '--json', 'one.json', '--history', 'one.json'], /take a file each/],
  ] as const)('refuses %s', async ([args, reason, expected = 2], { expect }) => {
    await using place = new CommandPlace()
    const { status, stderr } = await place.signalbox('chaos', ...args)
    expect(status).toBe(expected)
    expect(stderr).toMatch(reason)
  })

  test('refuses a redlock that can not be used, and says which one to install', async ({ expect }) => {
    const folder = packageWith('redlock', '4.2.0', 'module.exports = class Redlock {}')
    await using place = new CommandPlace()
    const argv = ['chaos', '--engine', 'redis://127.0.0.1:1', '--peer', 'redlock']
    const { status, stderr } = await place.program(process.execPath, join(folder, builtProgram), ...argv)
      .ended
    expect(stderr).toContain('npm install redlock@5.0.0-beta.2 ioredis')
    expect(status).toBe(2)
  })
})
