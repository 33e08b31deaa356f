import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as proper from 'proper-lockfile'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pause, until } from '../../packages/conformance/src/time.js'
import * as ours from 'signalbox-lockfile'
import { lockfile, lockfileElsewhere, properLockfile, Client, type Kind } from './client.js'
import { contest, type ContestResult } from './contest.js'
import type { Part } from './rounds.js'

/** Maximum duration of a contest, in milliseconds. */
const LIMIT = 100_000

/** Returns the path of a new file in a new folder. */
function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-lockfile-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'file'), '')
  return join(folder, 'file')
}

function part(file: string): Part {
  return { url: '', name: file, lease: 10_000, renew: true, retry: 2, hold: 1, pause: 2, excludes: true }
}

async function start(kind: Kind, file: string): Promise<Client> {
  const client = await Client.start(kind, part(file))
  onTestFinished(() => client[Symbol.asyncDispose]())
  return client
}

function meet(kinds: readonly Kind[], times: number): Promise<ContestResult> {
  const file = newFile()
  const [first, second] = [...new Set(kinds.map(({ kind }) => kind))]
  const wanted = new Map([
    [`${first} > ${second}`, times],
    [`${second} > ${first}`, times],
  ])
  return contest({ clients: kinds.map(kind => [kind, part(file)]), wanted, limit: LIMIT })
}

describe('ours and proper-lockfile', () => {
  test('are never inside at once, in 1,000 hand-overs between the two kinds', async () => {
    const result = await meet([lockfile, lockfile, properLockfile, properLockfile], 500)
    expect(result.overlaps).toEqual([])
    for (const pair of ['lockfile > proper-lockfile', 'proper-lockfile > lockfile'])
      expect(result.handOvers.get(pair) ?? 0, pair).toBeGreaterThanOrEqual(500)
  })

  test('the same rounds are found to overlap when ours calls the folder by another name', async () => {
    const result = await meet([lockfileElsewhere, properLockfile], 100)
    expect(result.overlaps.length).toBeGreaterThan(5)
  })

  test.each([
    ['ours', 'proper-lockfile', ours, proper],
    ['proper-lockfile', 'ours', proper, ours],
  ] as const)('what %s has locked is locked for %s until its release', async (_, __, one, other) => {
    const file = newFile()
    for (const lock of [one.lock, one.lockSync]) {
      const release = await lock(file)
      expect(await other.check(file)).toBe(true)
      expect(other.checkSync(file)).toBe(true)
      await expect(other.lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
      expect(() => other.lockSync(file)).toThrow('already being held')
      await release()
      expect(await other.check(file)).toBe(false)
      other.lockSync(file)()
    }
  })

  test.each([
    ['ours', 'proper-lockfile', lockfile, proper],
    ['proper-lockfile', 'ours', properLockfile, ours],
  ] as const)('a killed holder of %s is stale for %s', async (_, __, kind, other) => {
    const file = newFile()
    const holder = await start(kind, file)
    expect(await holder.acquire(0)).toBe(true)
    if (kind === properLockfile) await expect(other.lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
    await holder[Symbol.asyncDispose]()
    if (kind === properLockfile) await expect(other.lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
    const before = new Date(Date.now() - 20_000)
    utimesSync(`${file}.lock`, before, before)
    const release = await other.lock(file)
    await release()
    expect(readdirSync(join(file, '..'))).toEqual(['file'])
  })

  test.each([
    ['ours', 'proper-lockfile', ours, proper],
    ['proper-lockfile', 'ours', proper, ours],
  ] as const)('%s keeps its lock fresh for %s', async (_, __, one, other) => {
    const file = newFile()
    const release = await one.lock(file, { stale: 2000 })
    const time = (): number => statSync(`${file}.lock`).mtimeMs
    const before = time()
    await until('it is updated', () => time() !== before)
    await expect(other.lock(file, { stale: 2000 })).rejects.toMatchObject({ code: 'ELOCKED' })
    await release()
    expect(existsSync(`${file}.lock`)).toBe(false)
  })

  test.each([
    ['ours', ours, proper],
    ['proper-lockfile', proper, ours],
  ] as const)('%s finds out that the other has taken its stale lock over', async (_, one, other) => {
    const file = newFile()
    const errors: Error[] = []
    const release = await one.lock(file, { update: 1000, onCompromised: error => errors.push(error) })
    const before = new Date(Date.now() - 20_000)
    utimesSync(`${file}.lock`, before, before)
    const releaseOther = await other.lock(file)
    await until('it is compromised', () => errors.length > 0)
    expect(errors).toMatchObject([{ code: 'ECOMPROMISED' }])
    await expect(release()).rejects.toMatchObject({ code: 'ERELEASED' })
    expect(await one.check(file)).toBe(true)
    await releaseOther()
    expect(await one.check(file)).toBe(false)
  })

  test('ours is woken by the release of proper-lockfile', async () => {
    const file = newFile()
    const release = await proper.lock(file)
    const waiting = ours.lock(file, { retries: { retries: 1, minTimeout: 60_000 } })
    await pause(200)
    const released = performance.now()
    await release()
    await (
      await waiting
    )()
    expect(performance.now() - released).toBeLessThan(1000)
  })

  test('programs with the types of either compile with the other', () => {
    const asOurs: Omit<typeof ours, 'default'> = proper
    const asProper: typeof proper = ours
    const options: proper.LockOptions[] = [{} as ours.LockOptions]
    const ourOptions: ours.LockOptions[] = [{} as proper.LockOptions]
    expect(Object.keys(asProper)).toEqual(expect.arrayContaining(Object.keys(asOurs)))
    expect(options).toEqual(ourOptions)
  })
})
