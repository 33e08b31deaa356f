import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../../src/base/clock.js'
import { Database } from '../../../../src/engines/file/database.js'
import { loadSqlite, SqliteError, type Connection } from '../../../../src/engines/file/driver.js'
import { explained } from '../../../../src/engines/file/failures.js'
import { FileAccess } from '../../../../src/engines/file/file-access.js'
import { Transactions } from '../../../../src/engines/file/transactions.js'
import { Mailbox } from '../../../../src/engines/file/mailbox.js'
import { marksOf, WaiterBoard } from '../../../../src/engines/file/waiter-board.js'
import { WriteLock } from '../../../../src/engines/file/write-lock.js'

const originals = { ...fs }

/** Makes a function of `node:fs` fail as on a failing disk, for the calls that match. */
function fail<Name extends 'readSync' | 'fstatSync' | 'closeSync' | 'fchmodSync' | 'lstatSync'>(
  name: Name,
  isMeant: (...args: readonly unknown[]) => boolean = () => true,
): void {
  const original = originals[name] as (...args: unknown[]) => unknown
  Object.assign(fs, {
    [name]: (...args: unknown[]) => {
      if (isMeant(...args)) throw Object.assign(new Error(`${name}: i/o error`), { code: 'EIO' })
      return original(...args)
    },
  })
  syncBuiltinESMExports()
}

let folder: string
let path: string

beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'signalbox-errors-'))
  path = join(folder, 'some.db')
})

afterEach(() => {
  restore()
  fs.rmSync(folder, { recursive: true })
})

function restore(): void {
  const { readSync, fstatSync, closeSync, fchmodSync, lstatSync } = originals
  Object.assign(fs, { readSync, fstatSync, closeSync, fchmodSync, lstatSync })
  syncBuiltinESMExports()
}

async function opened(): Promise<Database> {
  return Database.open(await loadSqlite(), path, systemClock, 1000)
}

describe('an I/O error', () => {
  test('while the length of the log is read does not fail a transaction that is committed', async () => {
    const database = await opened()
    const log = fs.statSync(`${path}-wal`).ino
    fail('readSync', descriptor => originals.fstatSync(descriptor as number).ino === log)
    await database.run(() => database.connection.exec('create table t (x integer)'))
    for (let x = 0; x < 40; x++) {
      await database.run(() => database.connection.exec(`insert into t values (${x})`))
    }
    expect(database.connection.prepare('select count(*) from t').get()).toEqual([40])
    await database.close()
  })

  test('after a sync rejects the commits that wait for it', async () => {
    const database = await opened()
    fail('fstatSync')
    await expect(database.log.sync()).rejects.toMatchObject({ code: 'EIO' })
    await database.close()
  })

  test('while files are closed keeps no lock of the database', async () => {
    const database = await opened()
    expect(database.connection.begin()).toBe(true)
    fail('closeSync')
    await database.close()
    restore()
    const next = await opened()
    await next.run(() => undefined)
    await next.close()
  })

  test('in the marks of waiters is ignored, because they are hints', async () => {
    const board = WaiterBoard.open(path, systemClock)
    fail('readSync')
    expect(board.elders(systemClock.now())).toBe(0)
    board.close()
  })

  test('while sockets of dead processes are looked for leaves them there', async () => {
    const mailbox = await Mailbox.open(folder, () => undefined, systemClock)
    const socket = `${'a'.repeat(24)}.box`
    fs.writeFileSync(join(folder, socket), '')
    fail('lstatSync')
    await mailbox.removeOrphans([])
    expect(fs.readdirSync(folder)).toContain(socket)
    await mailbox.close()
  })

  test('while a file is made leaves no other file behind', () => {
    fail('fchmodSync')
    expect(() => new FileAccess(folder).make(path)).toThrow('i/o error')
    expect(fs.readdirSync(folder)).toEqual([])
  })
})

test.runIf(process.platform === 'linux')('a read that fails is not taken for an empty file', async () => {
  const { open } = await loadSqlite()
  // The system cannot read the first page of this file.
  expect(() => open('/proc/self/mem')).toThrow(SqliteError)
})

/** Extended result codes: https://www.sqlite.org/rescode.html */
const READ_FAILED = 266
const WRITE_FAILED = 778
const INDEX_FAILED = 4874
const FULL = 13

describe('a transaction fails', () => {
  test.each([
    ['before its commit, with certainty', 'work', READ_FAILED, 'UNAVAILABLE'],
    ['to begin, with certainty', 'begin', READ_FAILED, 'UNAVAILABLE'],
    ['to be written, with certainty, as when a disk quota is used up', 'commit', WRITE_FAILED, 'UNAVAILABLE'],
    ['on a full disk, with certainty', 'commit', FULL, 'UNAVAILABLE'],
    ['after it was written, and it may be found there', 'commit', INDEX_FAILED, 'INDETERMINATE'],
  ])('%s', async (_, where, extended, code) => {
    const problem = new SqliteError('disk I/O error', extended, undefined)
    const failAt = (place: string): void => {
      if (place === where) throw problem
    }
    const connection: Connection = {
      begin: () => (failAt('begin'), true),
      exec: failAt,
      prepare: () => {
        throw new Error('no statement is prepared')
      },
      close: () => undefined,
    }
    fs.writeFileSync(marksOf(path), '')
    const board = WaiterBoard.open(path, systemClock)
    const lock = new WriteLock(connection, board, systemClock, 1000)
    const transactions = new Transactions(connection, lock, systemClock, () => undefined)
    const error: unknown = await transactions.run(() => failAt('work')).catch((cause: unknown) => cause)
    expect(explained('file:some', 'commit', error)).toMatchObject({ code })
    board.close()
  })
})
