import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LostError, open, type Box, type LockReport } from '../../src/index.js'

/** The exit status and the output of a command. */
interface End {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

const program = fileURLToPath(new URL('../../dist/apps/signalbox.js', import.meta.url))

let folder: string
let url: string
let boxes: Box[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
  url = `file:${folder}/locks`
  boxes = []
})

afterEach(async () => {
  for (const box of boxes) await box.close()
  rmSync(folder, { recursive: true, force: true })
})

async function openBox(label: string): Promise<Box> {
  const box = await open(url, { label })
  boxes.push(box)
  return box
}

/** Runs a command as a user does, through the built program. */
function run(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<End> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: folder,
      env: { ...process.env, SIGNALBOX_URL: undefined, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const end = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => (end.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (end.stderr += text))
    child.on('error', reject).on('close', status => resolve({ status, ...end }))
  })
}

function signalbox(...args: string[]): Promise<End> {
  return run(process.execPath, [program, ...args])
}

async function report(key: string): Promise<LockReport> {
  const { status, stdout, stderr } = await signalbox('ls', '--engine', url, '--json', key)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout) as LockReport
}

/** Waits until the engine has the expected number of requests for the key. */
async function waitersOf(box: Box, key: string, count: number): Promise<void> {
  await expect
    .poll(async () => {
      for await (const { waiters } of box.inspect(key)) return waiters.length
      return 0
    })
    .toBe(count)
}

describe('ls', () => {
  test('shows holders and waiters of other processes, for all keys or a prefix', async () => {
    const first = await openBox('billing')
    const second = await openBox('shipping')
    const grant = await first.mutex('invoice:42', 'invoice:43').acquire()
    const permits = await second.semaphore('gpu', { max: 4 }).acquire({ permits: 2, label: 'training' })
    const waiting = second.mutex('invoice:42').acquire()
    await waitersOf(first, 'invoice:42', 1)

    const { status, stdout, stderr } = await signalbox('ls', '--engine', url)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const rows = stdout.split('\n').map(row => row.split(/ {2,}/))
    expect(rows.map(row => row.slice(0, 3))).toEqual([
      ['KEY', 'STATE', 'CLAIM'],
      ['gpu', 'held', '2 of 4'],
      ['invoice:42', 'held', 'exclusive'],
      ['invoice:42', 'waits 1', 'exclusive'],
      ['invoice:43', 'held', 'exclusive'],
      [''],
    ])
    expect(stdout).toContain('training')
    expect(stdout).toContain(first.session)

    const { holders, waiters } = await report('invoice:42')
    expect(holders).toMatchObject([
      { session: first.session, pid: process.pid, label: 'billing', token: String(grant.token) },
    ])
    expect(waiters).toMatchObject([{ session: second.session, label: 'shipping' }])
    expect((await report('gpu')).holders).toMatchObject([{ token: String(permits.token) }])

    await grant.release()
    await (await waiting).release()
  })

  test('takes the engine from the environment, and exits with 0 when its reader closes the pipe', async () => {
    const box = await openBox('many')
    const keys = Array.from({ length: 500 }, (_, index) => `${'key'.repeat(100)}${index}`)
    await box.mutex(...keys).acquire()
    const script = '"$0" "$1" ls | head -n 1; echo "${PIPESTATUS[0]}"'
    const end = await run('bash', ['-c', script, process.execPath, program], { SIGNALBOX_URL: url })
    expect(end).toMatchObject({ status: 0, stderr: '' })
    expect(end.stdout).toMatch(/^KEY .*\n0\n$/)
  })

  test.runIf(existsSync('/dev/full'))('reports in one line that it can not write', async () => {
    await openBox('first')
    const end = await run('bash', ['-c', '"$0" "$1" ls > /dev/full', process.execPath, program], {
      SIGNALBOX_URL: url,
    })
    expect(end.status).toBe(1)
    expect(end.stderr).toMatch(/^signalbox: ENOSPC.*\n$/)
  })

  test('reports in one line that a file is no database', async () => {
    mkdirSync(join(folder, 'locks'))
    writeFileSync(join(folder, 'locks/signalbox.db'), 'no database\n'.repeat(1000))
    const { status, stdout, stderr } = await signalbox('ls', '--engine', url)
    expect({ status, stdout }).toEqual({ status: 69, stdout: '' })
    expect(stderr).toMatch(/^signalbox: .*not a SQLite database.*\n$/)
    expect(stderr).not.toContain('    at ')
  })
})

describe('release', () => {
  test('takes away the grant with that token, and the next waiter gets its keys', async () => {
    const first = await openBox('first')
    const second = await openBox('second')
    const grant = await first.mutex('a', 'b').acquire()
    const waiting = second.mutex('b').acquire()
    await waitersOf(first, 'b', 1)

    const wrong = await signalbox('release', 'a', '--token', String(grant.token + 1024n), '--engine', url)
    expect(wrong).toEqual({
      status: 1,
      stdout: '',
      stderr: `signalbox: a has no holder with token ${grant.token + 1024n}\n`,
    })
    grant.assertHeld()

    const { holders } = await report('a')
    const done = await signalbox('release', 'a', '--token', String(holders[0]!.token), '--engine', url)
    expect(done).toEqual({ status: 0, stdout: 'released a\n', stderr: '' })
    const next = await waiting
    expect(next.token).toBeGreaterThan(grant.token)
    await expect.poll(() => grant.expiresIn()).toBe(0)
    await expect(grant.release()).rejects.toThrow(LostError)
  })
})

describe('revoke', () => {
  test('takes away all grants of a session, once', async () => {
    const first = await openBox('first')
    const second = await openBox('second')
    await first.mutex('a').acquire()
    await first.mutex('b').acquire()
    const waiting = second.mutex('a', 'b').acquire()
    await waitersOf(second, 'a', 1)

    const done = await signalbox('revoke', first.session, '--engine', url)
    expect(done).toEqual({ status: 0, stdout: `revoked 2 requests of ${first.session}\n`, stderr: '' })
    await (await waiting).release()
    expect(await signalbox('revoke', first.session, '--engine', url)).toEqual({
      status: 1,
      stdout: '',
      stderr: `signalbox: session ${first.session} holds nothing and waits for nothing\n`,
    })
  })
})

describe('trains', () => {
  test('runs the train tracker, with its options and statuses', async () => {
    const { status, stdout } = await signalbox('trains', '--engine', url, '--processes', '2', '--days', '1')
    expect(status).toBe(0)
    expect(stdout).toContain('Every location agrees with the serial result.')
    expect((await signalbox('trains', '--help')).stdout).toMatch(/^Usage: signalbox trains .*Exit status:/s)
    const refused = await signalbox('trains', '--processes', 'x')
    expect(refused.status).toBe(2)
    expect(refused.stderr).toContain('--processes')
  })

  test('runs to its end after the reader of its output has closed the pipe', async () => {
    const script =
      '"$0" "$1" trains --days 1 --processes 2 --json report.json | head -n 1; echo "${PIPESTATUS[0]}"'
    const end = await run('bash', ['-c', script, process.execPath, program])
    expect(end).toMatchObject({ status: 0, stderr: '' })
    expect(end.stdout).toMatch(/^timetable .*\n0\n$/)
    const result = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as Record<string, unknown>
    expect(result).toMatchObject({ processes: 2, created: 218, matchesSerial: true })
  })
})
