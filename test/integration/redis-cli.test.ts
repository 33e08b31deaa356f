import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { LostError, type LockReport } from '../../src/index.js'
import { queued } from '../../packages/conformance/src/time.js'
import { RedisPlace } from '../support/redis/place.js'

const program = fileURLToPath(new URL('../../dist/apps/signalbox.js', import.meta.url))

/** Runs the built program, like a user. */
function signalbox(...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const end = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => (end.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (end.stderr += text))
    child.on('error', reject).on('close', status => resolve({ status, ...end }))
  })
}

test('commands show the locks on a server, and take them away', async () => {
  await using here = await RedisPlace.start({ config: ['requirepass secret'] })
  const url = here.server.url.replace('//', '//:secret@') + '?prefix=app:'
  const [box, other] = [await here.box(url, { label: 'billing' }), await here.box(url, { label: 'shipping' })]
  const grant = await box.mutex('invoice').acquire({ lease: 3000 })
  const permits = await box.semaphore('gpu', { max: 4 }).acquire({ permits: 2, lease: 3000 })
  const waiting = other.mutex('invoice').acquire()
  await queued(box, 'invoice', 1)

  const shown = await signalbox('ls', '--engine', url)
  expect(shown).toMatchObject({ status: 0, stderr: '' })
  const rows = shown.stdout.split('\n').map(row => row.split(/ {2,}/).slice(0, 3))
  expect(rows).toEqual([
    ['KEY', 'STATE', 'CLAIM'],
    ['gpu', 'held', '2 of 4'],
    ['invoice', 'held', 'exclusive'],
    ['invoice', 'waits 1', 'exclusive'],
    [''],
  ])
  const listed = await signalbox('ls', '--engine', url, '--json', 'invoice')
  const { holders, waiters } = JSON.parse(listed.stdout) as LockReport
  expect(holders).toMatchObject([{ session: box.session, label: 'billing', token: String(grant.token) }])
  expect(waiters).toMatchObject([{ session: other.session, label: 'shipping' }])

  const released = await signalbox('release', 'invoice', '--token', String(grant.token), '--engine', url)
  expect(released).toEqual({ status: 0, stdout: 'released invoice\n', stderr: '' })
  expect((await waiting).token).toBeGreaterThan(grant.token)
  await expect(grant.release()).rejects.toThrow(LostError)

  const revoked = await signalbox('revoke', box.session, '--engine', url)
  expect(revoked).toEqual({ status: 0, stdout: `revoked 1 request of ${box.session}\n`, stderr: '' })
  await expect(permits.release()).rejects.toThrow(LostError)

  await here.server.kill()
  const gone = await signalbox('ls', '--engine', url)
  expect(gone).toMatchObject({ status: 69, stdout: '' })
  expect(gone.stderr).toMatch(/^signalbox: .*can't reach.*\n$/)
  expect(gone.stderr).not.toContain('secret')
})
