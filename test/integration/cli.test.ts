import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { queued } from '../../packages/conformance/src/time.js'
import { LostError, type LockReport } from '../../src/index.js'
import { CommandPlace, type End } from './command-line.js'

let place: CommandPlace

beforeEach(() => {
  place = new CommandPlace()
})

afterEach(() => place[Symbol.asyncDispose]())

async function report(key: string): Promise<LockReport> {
  const { status, stdout, stderr } = await place.signalbox('ls', '--json', key)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout) as LockReport
}

test('ls shows holders and waiters, release takes away one grant, and revoke all of a session', async () => {
  const first = await place.box('billing')
  const second = await place.box('shipping')
  const grant = await first.mutex('invoice:42', 'invoice:43').acquire()
  const permits = await second.semaphore('gpu', { max: 4 }).acquire({ permits: 2, label: 'training' })
  const waiting = second.mutex('invoice:42').acquire()
  await queued(first, 'invoice:42', 1)

  const { status, stdout, stderr } = await place.signalbox('ls')
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

  const release = (token: bigint): Promise<End> =>
    place.signalbox('release', 'invoice:43', '--token', String(token))
  expect(await release(grant.token + 1024n)).toEqual({
    status: 1,
    stdout: '',
    stderr: `signalbox: invoice:43 has no holder with token ${grant.token + 1024n}\n`,
  })
  grant.assertHeld()
  expect(await release(grant.token)).toEqual({ status: 0, stdout: 'released invoice:43\n', stderr: '' })
  expect((await waiting).token).toBeGreaterThan(grant.token)
  await expect.poll(() => grant.expiresIn()).toBe(0)
  await expect(grant.release()).rejects.toThrow(LostError)

  const { session } = second
  expect(await place.signalbox('revoke', session)).toEqual({
    status: 0,
    stdout: `revoked 2 requests of ${session}\n`,
    stderr: '',
  })
  await first.mutex('invoice:42', 'gpu').acquire()
  expect(await place.signalbox('revoke', session)).toEqual({
    status: 1,
    stdout: '',
    stderr: `signalbox: session ${session} holds nothing and waits for nothing\n`,
  })
})

describe('ls', () => {
  test('takes the engine from the environment, and exits with 0 when its reader closes the pipe', async () => {
    const box = await place.box('many')
    const keys = Array.from({ length: 500 }, (_, index) => `${'key'.repeat(100)}${index}`)
    await box.mutex(...keys).acquire()
    const end = await place.bash('"$NODE" "$SIGNALBOX" ls | head -n 1; echo "${PIPESTATUS[0]}"')
    expect(end).toMatchObject({ status: 0, stderr: '' })
    expect(end.stdout).toMatch(/^KEY .*\n0\n$/)
  })

  test.runIf(existsSync('/dev/full'))('reports in one line that it can not write', async () => {
    await place.box('first')
    const end = await place.bash('"$NODE" "$SIGNALBOX" ls > /dev/full')
    expect(end.status).toBe(1)
    expect(end.stderr).toMatch(/^signalbox: ENOSPC.*\n$/)
  })

  test('reports in one line that a file is no database', async () => {
    mkdirSync(join(place.folder, 'locks'))
    writeFileSync(join(place.folder, 'locks/signalbox.db'), 'no database\n'.repeat(1000))
    const { status, stdout, stderr } = await place.signalbox('ls')
    expect({ status, stdout }).toEqual({ status: 69, stdout: '' })
    expect(stderr).toMatch(/^signalbox: .*not a SQLite database.*\n$/)
    expect(stderr).not.toContain('    at ')
  })
})

describe('trains', () => {
  test('runs the train tracker, with its options and statuses', async () => {
    const argv = ['--engine', place.url, '--processes', '2', '--days', '1']
    const { status, stdout } = await place.signalbox('trains', ...argv)
    expect(status).toBe(0)
    expect(stdout).toContain('Every location agrees with the serial result.')
    const { stdout: help } = await place.signalbox('trains', '--help')
    expect(help).toMatch(/^Usage: signalbox trains .*Exit status:/s)
    const refused = await place.signalbox('trains', '--processes', 'x')
    expect(refused.status).toBe(2)
    expect(refused.stderr).toContain('--processes')
  })
})
