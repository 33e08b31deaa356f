import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { loadSqlite } from '../../src/engines/file/driver.js'
import { failure } from '../support/failure.js'
import { apart, cannotBeApart, type Apart } from '../support/file/namespaces.js'
import { place, type Place } from '../support/file/places.js'
import type { RemoteBox } from '../support/file/remote-box.js'

/** Leases far longer than these tests, so locks become free only because their holder is dead. */
const LONG = { lease: 60_000 }
const CONTAINER: Apart = { pid: true, boot: true }

const probe = mkdtempSync(join(tmpdir(), 'signalbox-apart-'))
const impossible = process.platform === 'linux' ? cannotBeApart(probe) : 'there are no namespaces here'
rmSync(probe, { recursive: true })

beforeEach(({ skip }) => skip(impossible !== undefined, impossible))

let here: Place

beforeEach(() => {
  here = place()
})

function processApart(where: Apart): Promise<RemoteBox> {
  return here.process(here.url, { enter: apart(here.folder, where) })
}

/** Returns the box, or the error with which its opening failed. */
async function attempt(opening: Promise<RemoteBox>): Promise<RemoteBox | Error> {
  return opening.catch((error: unknown) => error as Error)
}

async function expectRefused(opening: Promise<RemoteBox>, reason = 'the folder is in use'): Promise<void> {
  await expect(opening).rejects.toMatchObject(failure('UNAVAILABLE', reason))
}

/** Ends a process from inside, and waits for its end. A kill would end only the command that started it. */
async function end(box: RemoteBox): Promise<void> {
  box.call('end').catch(() => undefined)
  await box.ended
}

/** Removes the sockets of all boxes, like a program that cleans up. */
function removeSockets(): void {
  for (const name of readdirSync(here.folder)) if (name.endsWith('.box')) rmSync(join(here.folder, name))
}

/** Makes the database look as if the machine had been restarted. */
async function reboot(): Promise<void> {
  const connection = (await loadSqlite()).open(join(here.folder, 'signalbox.db'))
  connection.exec(`update machine set boot = 'earlier'`)
  connection.close()
}

const KINDS: [string, Apart][] = [
  ['with process ids of its own', { pid: true }],
  ['with a boot id of its own', { boot: true }],
  ['with both', CONTAINER],
  ['with other clocks', { ahead: 100_000 }],
]

describe.each(KINDS)('a container %s', (_, where) => {
  test('is refused while a process of the host has a box, and admitted when that is closed', async () => {
    const host = await here.process()
    await host.mutex('it', ['key'], LONG)
    await expectRefused(processApart(where))
    await host.call('assertHeld', 'it')
    await host.release('it')
    await host.call('close')
    const container = await processApart(where)
    await container.mutex('it', ['key'], LONG)
  })

  test('keeps the host out while it has a box, and its locks are free when it is gone', async () => {
    const container = await processApart(where)
    const { token } = await container.mutex('it', ['key'], LONG)
    await expectRefused(here.process())
    await container.call('assertHeld', 'it')
    await end(container)
    const host = await here.process()
    expect((await host.mutex('it', ['key'], LONG)).token).toBeGreaterThan(token)
  })
})

test.each(KINDS)('a box whose socket file is gone keeps out a container %s', async (_, where) => {
  const host = await here.process()
  await host.mutex('it', ['key'], LONG)
  removeSockets()
  await expectRefused(processApart(where), 'end that process first')
  await host.call('assertHeld', 'it')
})

test.each<[string, string, (path: string) => unknown]>([
  // Closing the file drops all locks of this process on it.
  ['its process has read the database', 'signalbox.db', readFileSync],
  ['a program has deleted the open lock', 'opening.db', rmSync],
])('a box whose socket file is gone keeps out a container, also when %s', async (_, file, spoil) => {
  const host = await here.box()
  const grant = await host.mutex('key').acquire(LONG)
  spoil(join(here.folder, file))
  removeSockets()
  await expectRefused(processApart(CONTAINER), 'end that process first')
  // A box gives up its grants once it notices that the open lock is gone.
  if (spoil !== rmSync) grant.assertHeld()
})

test('when the host and containers open at once, only one of them gets in', async () => {
  for (let round = 0; round < 3; round++) {
    const host = { where: 'host', open: () => here.process() }
    const containers = ['one', 'two'].map(where => ({ where, open: () => processApart(CONTAINER) }))
    const results = await Promise.all(
      [...containers, host, host].map(async ({ where, open }) => ({ where, result: await attempt(open()) })),
    )
    const inside = results.filter(({ result }) => !(result instanceof Error))
    expect(new Set(inside.map(({ where }) => where)).size, JSON.stringify(results)).toBe(1)
    for (const { result } of inside) await end(result as RemoteBox)
  }
})

describe('a restart of the machine', () => {
  /** Leaves a lock behind, like a machine that crashes. Returns its token. */
  async function goDown(): Promise<bigint> {
    const box = await here.process()
    const { token } = await box.mutex('it', ['key'], LONG)
    await box.kill()
    await reboot()
    return token
  }

  test('frees what was held, also while a program reads the database', async () => {
    const token = await goDown()
    const reader = await here.connection()
    reader.exec('select * from machine')
    const after = await here.process()
    expect((await after.mutex('it', ['key'], LONG)).token).toBeGreaterThan(token)
  })

  test('is distinguished from a lost socket file only when no program has the database open', async () => {
    await goDown()
    removeSockets()
    const reader = await here.connection()
    reader.exec('select * from machine')
    await expectRefused(here.process(), 'end that process first')
    reader.close()
    await (await here.process()).mutex('it', ['key'], LONG)
  })

  test.each(['there', 'gone'])(
    'admits all processes that come at once, with socket files that are %s',
    async files => {
      await goDown()
      if (files === 'gone') removeSockets()
      const boxes = await Promise.all(Array.from({ length: 8 }, () => here.box()))
      await boxes[0]!.mutex('key').acquire()
    },
  )
})
