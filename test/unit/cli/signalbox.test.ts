import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { chaos, mutex, trains } from '../../../apps/applications.js'
import { signalbox } from '../../../src/cli/signalbox.js'

let stdout = ''
let stderr = ''
const terminal = {
  stdout: { write: (text: string | Uint8Array) => void (stdout += String(text)) },
  stderr: { write: (text: string) => void (stderr += text) },
  stdin: Readable.from([]),
  unread: new AbortController().signal,
}

beforeEach(() => {
  stdout = ''
  stderr = ''
  vi.stubEnv('SIGNALBOX_URL', undefined)
})

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const file = 'file:./locks'
test.each([
  [['lss'], "unknown command 'lss' (Did you mean ls?)"],
  [['ls'], 'missing engine: pass --engine URL or set SIGNALBOX_URL'],
  [['ls', '--engine', ''], 'missing engine'],
  [['ls', '--engine', 'memory:'], 'visible inside one process only'],
  [['ls', '--engine', 'locks'], 'the source to open must be a URL'],
  [['ls', '--engine', 'file:./locks?x=1'], 'unknown option "x"; it must be durable'],
  [['ls', '--engine', file, 'a', 'b'], 'too many arguments'],
  [['ls', '--engine', file, '--jsn'], "unknown option '--jsn' (Did you mean --json?)"],
  [['release', '--engine', file, '--token', '1'], "missing required argument 'key'"],
  [['release', '--engine', file, 'key'], "'--token <number>' not specified"],
  [['release', '--engine', file, 'key', '--token', '-1'], 'It must be a token such as'],
  [['release', '--engine', file, 'key', '--token', '9223372036854775808'], 'It must be a token such as'],
  [['revoke', '--engine', file], "missing required argument 'session'"],
  [['run', '--engine', file, '--lock', 'a', '--once-per', '', '--', 'true'], 'It must not be empty'],
  [
    ['run', '--engine', file, '--lock', 'a', '--fence-env', 'A=B', '--', 'true'],
    'name of an environment variable',
  ],
  [['lead', '--', 'echo', 'hi'], "missing required argument 'name'"],
])('refuses %j with one line and status 2', async (args, reason) => {
  expect(await signalbox(args, terminal)).toBe(2)
  expect(stderr).toMatch(/^signalbox: [^\n]+\n$/)
  expect(stderr).toContain(reason)
  expect(stdout).toBe('')
})

const command = ['--', 'true']
test.each<[string, (value: string) => string[], string[]?]>([
  ['--lock', (value: string) => ['run', '--lock', value, ...command], ['']],
  ['--permits', (value: string) => ['run', '--lock', 'a', '--permits', value, ...command]],
  [
    '--once-per',
    (value: string) => ['run', '--lock', 'a', '--once-per', value, ...command],
    ['', ' ', '5 ', '5s '],
  ],
  ['--wait', (value: string) => ['run', '--lock', 'a', '--wait', value, ...command]],
  ['--lease', (value: string) => ['run', '--lock', 'a', '--lease', value, ...command]],
  ['--grace', (value: string) => ['lead', 'a', '--grace', value, ...command]],
  ['--hold-at-least', (value: string) => ['run', '--lock', 'a', '--hold-at-least', value, ...command]],
  ['--rate', (value: string) => ['limit', 'a', '--rate', value, ...command]],
  ['--every', (value: string) => ['top', '--every', value]],
  ['--count', (value: string) => ['top', '--count', value], ['', ' ', 'true', 'NaN', '5 ', ' 5s']],
  ['--token', (value: string) => ['release', 'a', '--token', value], ['', ' ', 'true', 'NaN', '5 ', ' 5s']],
  ["'name'", (value: string) => ['lead', value, ...command], ['']],
  ["'name'", (value: string) => ['limit', value, '--rate', '1/s', ...command], ['']],
  ["'name'", (value: string) => ['resume', value], ['']],
  ["'session'", (value: string) => ['revoke', value], ['']],
  ["'store'", (value: string) => ['put', value, 'k', '1'], ['']],
  ["'key'", (value: string) => ['put', 's', value, '1'], ['']],
  ["'key'", (value: string) => ['cas', 's', value, '0', '1'], ['']],
  ["'key'", (value: string) => ['get', 's', value], ['']],
  ["'version'", (value: string) => ['cas', 's', 'k', value, '1'], ['', ' ', 'true', 'NaN', '5 ', ' 5s']],
  ['the value must be JSON', (value: string) => ['put', 's', 'k', value], ['', ' ', 'NaN', ' 5s']],
  ["'key'", (value: string) => ['show', value], ['']],
  ["'key'", (value: string) => ['wait', value], ['']],
])('refuses values that a variable may hold for %s, before a folder is made', async (named, args, values) => {
  const folder = emptyFolder()
  vi.stubEnv('SIGNALBOX_URL', `file:${folder}/locks`)
  for (const value of values ?? ['', ' ', 'null', '5', 'true', 'false', 'NaN', '5 ', '5s ', 'undefined']) {
    stderr = ''
    expect(await signalbox(args(value), terminal), JSON.stringify(value)).toBe(2)
    expect(stderr, JSON.stringify(value)).toContain(named)
  }
  expect(readdirSync(folder)).toEqual([])
})

test('a folder without locks is an error, and stays as it was', async () => {
  const folder = emptyFolder()
  for (const path of [folder, join(folder, 'deeper')]) {
    for (const args of [['ls'], ['release', 'key', '--token', '1024'], ['revoke', 'session']]) {
      stderr = ''
      expect(await signalbox([...args, '--engine', `file:${path}`], terminal)).toBe(1)
      expect(stderr).toBe(
        `signalbox: can't read file:${path}: ${path}/signalbox.db does not exist, so nothing was ever locked there\n`,
      )
    }
  }
  expect(readdirSync(folder)).toEqual([])
})

test('a path that leads through a file is an error', async () => {
  const path = join(emptyFolder(), 'file')
  writeFileSync(path, '')
  expect(await signalbox(['ls', '--engine', `file:${path}`], terminal)).toBe(1)
  expect(stderr).toMatch(/^signalbox: [^\n]*ENOTDIR[^\n]*\n$/)
})

test('the version is that of the package', async () => {
  const packageFile = new URL('../../../package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }
  expect(await signalbox(['--version'], terminal)).toBe(0)
  expect(stdout).toBe(`${version}\n`)
})

test('help names every subcommand, the engine option and the exit statuses', async () => {
  expect(await signalbox(['--help'], terminal, [trains, mutex, chaos])).toBe(0)
  expect(stdout).toMatch(/ls .*release .*revoke .*trains .*mutex .*Exit status:/s)
  stdout = ''
  expect(await signalbox(['ls', '--help'], terminal)).toBe(0)
  expect(stdout).toMatch(/--engine <url> .*SIGNALBOX_URL/s)
  expect(stderr).toBe('')
})

test('without a subcommand it prints the help on standard error', async () => {
  expect(await signalbox([], terminal)).toBe(2)
  expect(stderr).toContain('Usage: signalbox')
  expect(stdout).toBe('')
})
