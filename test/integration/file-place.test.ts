import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InvalidArgumentError, open, UnavailableError } from 'signalbox'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadSqlite } from '../../src/engines/file/driver.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-place-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Changes the database by hand. */
async function sql(text: string): Promise<void> {
  const connection = (await loadSqlite()).open(join(folder, 'signalbox.db'))
  connection.exec(text)
  connection.close()
}

describe('a place that does not fit is refused with its reason', () => {
  test('a file where the folder should be', async () => {
    writeFileSync(join(folder, 'file'), '')
    await expect(open(`file:${folder}/file`)).rejects.toThrow(UnavailableError)
    await expect(open(`file:${folder}/file/below`)).rejects.toThrow('the path is not a folder')
  })

  test('a file that is no database', async () => {
    writeFileSync(join(folder, 'signalbox.db'), 'x'.repeat(5000))
    await expect(open(`file:${folder}`)).rejects.toThrow('signalbox.db is no SQLite database')
  })

  test('a database of somebody else', async () => {
    await sql('create table theirs (id integer)')
    const opening = open(`file:${folder}`)
    await expect(opening).rejects.toThrow(InvalidArgumentError)
    await expect(opening).rejects.toThrow('was not made by Signalbox')
  })

  test('a database of another layout', async () => {
    await (await open(`file:${folder}`)).close()
    await sql('pragma user_version = 99')
    await expect(open(`file:${folder}`)).rejects.toThrow(/layout 99 .* layout 1/)
  })

  test('a folder that the system does not let be made', async () => {
    await expect(open('file:/proc/signalbox')).rejects.toThrow(UnavailableError)
  })
})

test('a reboot frees what was held, keeps what was committed, and lets no token fall', async () => {
  const before = await open(`file:${folder}`)
  const { token } = await before.mutex('key').acquire()
  await before.store('s').put('key', 'kept')
  await before.close()
  // As if the machine had gone down with a holder and a counter that had not reached the disk.
  await sql(`
    update machine set boot = 'another';
    update queues set queue = '1' where key = '';
    insert into queues values ('key', '[[1,1,"gone.1","gone",2,1e15,30000,1,null,0]]');
  `)
  await using after = await open(`file:${folder}`)
  const grant = await after.mutex('key').tryAcquire()
  expect(grant!.token).toBeGreaterThan(token)
  expect(await after.store('s').get('key')).toMatchObject({ value: 'kept' })
})
