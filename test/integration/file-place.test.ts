import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InvalidArgumentError, open, UnavailableError } from 'signalbox'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadSqlite } from '../../src/engines/file/driver.js'
import { failure } from '../support/failure.js'
import { place } from '../support/file/places.js'
import type { Start } from '../support/file/remote-box.js'
import { smallDisk } from '../support/file/small-disk.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-place-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Changes the database directly. */
async function sql(text: string): Promise<void> {
  const connection = (await loadSqlite()).open(join(folder, 'signalbox.db'))
  connection.exec(text)
  connection.close()
}

/**
 * Expects that the folder has the same files as before. SQLite removes its log and index once libsql's connection is
 * collected.
 */
function expectUntouched(before: readonly string[]): void {
  const after = readdirSync(folder)
  expect(before).toEqual(expect.arrayContaining(after))
  const lasting = before.filter(name => !/-(?:wal|shm)$/.test(name))
  expect(after).toEqual(expect.arrayContaining(lasting))
}

describe('an unfit place is refused with a reason', () => {
  test('a file where the folder should be, or a folder that can not be created', async () => {
    writeFileSync(join(folder, 'file'), '')
    await expect(open(`file:${folder}/file`)).rejects.toThrow(UnavailableError)
    await expect(open(`file:${folder}/file/below`)).rejects.toThrow('the path is not a folder')
    await expect(open('file:/proc/signalbox')).rejects.toThrow(UnavailableError)
  })

  test('a file that is not a database, or a database of another program', async () => {
    writeFileSync(join(folder, 'signalbox.db'), 'x'.repeat(5000))
    await expect(open(`file:${folder}`)).rejects.toThrow('signalbox.db is not a SQLite database')
    rmSync(join(folder, 'signalbox.db'))
    await sql('create table theirs (id integer)')
    const opening = open(`file:${folder}`)
    await expect(opening).rejects.toThrow(InvalidArgumentError)
    await expect(opening).rejects.toThrow('was not made by Signalbox')
  })

  test('a database of another layout', async () => {
    await (await open(`file:${folder}`)).close()
    await sql('pragma user_version = 99')
    await expect(open(`file:${folder}`)).rejects.toThrow(/layout 99 .* layout 2/)
  })
})

describe.runIf(process.platform === 'linux')('a place without write access is refused with a reason', () => {
  /** Returns the error with which a box on this URL fails to open in a process of its own. */
  async function refusal(url: string, start: Start): Promise<unknown> {
    try {
      await place().process(url, start)
    } catch (error) {
      return error
    }
    throw new Error(`${url} was opened`)
  }

  test('a read-only file system, with a database on it and without', async () => {
    const disk = await smallDisk('4m')
    const { enter } = disk
    const [kept, empty] = [`${disk.folder}/kept`, `${disk.folder}/empty`]
    await place()
      .process(`file:${kept}`, { enter })
      .then(box => box.kill())
    disk.run('mkdir', empty)
    disk.run('mount', '-o', 'remount,ro', disk.folder)
    for (const folder of [kept, empty, `${empty}/below`]) {
      const error = await refusal(`file:${folder}`, { enter })
      expect(error).toMatchObject({ code: 'UNAVAILABLE' })
      expect(error).toMatchObject({ message: expect.stringMatching(/read-only|can not be/) as string })
    }
  })

  test('files that only other users may write, which those can open as before', async () => {
    const url = `file:${folder}`
    // Root may write everywhere, so the process becomes another user.
    const user = process.getuid!() === 0 ? 65_534 : undefined
    const database = join(folder, 'signalbox.db')
    // The group of that user may write to the folder.
    if (user !== undefined) chownSync(folder, -1, user)
    chmodSync(folder, 0o770)
    /** Makes one file read-only, and all others writable by every user. */
    const expectRefused = async (file: string): Promise<void> => {
      const before = readdirSync(folder)
      for (const name of before) chmodSync(join(folder, name), 0o666)
      chmodSync(file, 0o444)
      expect(await refusal(url, { user })).toMatchObject({
        code: 'UNAVAILABLE',
        message: `${file} can not be opened for writing by this user`,
      })
      expectUntouched(before)
      chmodSync(file, 0o644)
    }
    const box = await open(url)
    await expectRefused(`${database}-wal`)
    await expectRefused(`${database}-shm`)
    await box.close()
    await expectRefused(`${database}-turns`)
    await expectRefused(database)
    await using again = await open(url)
    await again.mutex('key').run(() => undefined)
  })

  test('a folder of another user, with a database in it and without', async () => {
    const url = `file:${folder}`
    // Root may write everywhere, so the process becomes another user.
    const user = process.getuid!() === 0 ? 65_534 : undefined
    for (const mode of [0o755, 0o555, 0o700]) {
      chmodSync(folder, user === undefined ? 0o555 : mode)
      const error = await refusal(url, { user })
      expect(error).toMatchObject({ code: 'UNAVAILABLE' })
      expect(error).toMatchObject({
        message: expect.stringMatching(/may not be written|can not be/) as string,
      })
      expect(readdirSync(folder)).toEqual([])
    }
    chmodSync(folder, 0o755)
    await (await open(url)).close()
    const before = readdirSync(folder)
    chmodSync(folder, 0o555)
    expect(await refusal(url, { user })).toMatchObject(
      failure('UNAVAILABLE', /may not be written|can not be/),
    )
    expectUntouched(before)
    await expect(refusal(`${url}/below`, { user })).resolves.toMatchObject(
      failure('UNAVAILABLE', 'the folder may not be written'),
    )
  })
})

test('a reboot frees all locks, keeps all commits, and lowers no token', async () => {
  const before = await open(`file:${folder}`)
  const { token } = await before.mutex('key').acquire()
  await before.store('s').put('key', 'kept')
  await before.close()
  // Makes the database look as if the machine had crashed with a holder, and with a counter that was not yet on the
  // disk.
  await sql(`
    update machine set boot = 'another';
    update queues set queue = '1' where key = '';
    insert into queues values ('key', '[[1,1,"gone.1","gone",2,1e15,30000,1,null,0]]', 1);
    insert into tails values ('key', 2, 'gone.2', '[2,1,"gone.2","gone",0,1e15,30000,0,null,0]');
  `)
  await using after = await open(`file:${folder}`)
  const grant = await after.mutex('key').tryAcquire()
  expect(grant!.token).toBeGreaterThan(token)
  expect(await after.store('s').get('key')).toMatchObject({ value: 'kept' })
})

test.each([
  ['a lock', 'queues', `update queues set queue = '[[1,1' where key = 'bad'`],
  ['a request for several keys', 'requests', `update claims set claims = '{}'`],
  ['a limit', 'limits', `update limits set state = '{' where name like '%bad%'`],
])('%s that can not be read is named, and is gone when its row is deleted', async (_, table, spoil) => {
  await using box = await open(`file:${folder}`)
  // Opens another path of the folder, because boxes that share files also share the values that they have read.
  symlinkSync(folder, join(folder, 'same'))
  await using other = await open(`file:${folder}/same`)
  const limiter = (box_: typeof box) => box_.limiter('bad', { limit: 1, per: '1h' })
  const use = async (): Promise<unknown> => {
    if (table === 'limits') return limiter(other).tryAcquire()
    return other.mutex('bad').acquire({ wait: 200 })
  }
  if (table === 'requests') await box.mutex('bad', 'worse').acquire()
  else await box.mutex('bad').acquire()
  await limiter(box).tryAcquire()
  await sql(spoil)
  const error = await use().catch((reason: unknown) => reason as Error)
  expect(error).toMatchObject({ code: 'UNAVAILABLE' })
  const [statement] = /delete from .*/.exec((error as Error).message)!
  expect(statement).toContain(table)
  if (table === 'queues') await other.mutex('good').run(() => undefined)
  await sql(statement)
  expect(await use()).toBeDefined()
})
