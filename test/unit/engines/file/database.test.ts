import { mkdtempSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock, type Clock } from '../../../../src/base/clock.js'
import { Database } from '../../../../src/engines/file/database.js'
import { loadSqlite } from '../../../../src/engines/file/driver.js'
import { pause } from '../../../../packages/conformance/src/time.js'
import { marksOf } from '../../../../src/engines/file/waiter-board.js'

let folder: string
let path: string
const databases: Database[] = []

async function opened(patience = 10_000, clock = systemClock): Promise<Database> {
  const database = await Database.open(await loadSqlite(), path, clock, patience)
  databases.push(database)
  return database
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-database-'))
  path = join(folder, 'some.db')
})

afterEach(async () => {
  for (const database of databases.splice(0)) await database.close()
  rmSync(folder, { recursive: true, force: true })
})

/**
 * A clock that stands still. Transactions accept more work for a short time, which never ends here, however slow the
 * machine is.
 */
const standing: Clock = { now: () => 0, after: (...timer) => systemClock.after(...timer) }

async function withTable(clock?: Clock): Promise<Database> {
  const database = await opened(undefined, clock)
  await database.run(() => database.connection.exec('create table t (x integer unique)'))
  return database
}

function values({ connection }: Database): unknown[] {
  return connection
    .prepare('select x from t order by x')
    .all()
    .map(row => row[0])
}

test.each([
  ['at a time that is yet to come', [0, Infinity]],
  ['since ever, at a time that is yet to come', [-Infinity, Number.MAX_VALUE]],
  ['at no time', [0, NaN]],
  ['long ago', [0, 1]],
])('a waiter that reported %s does not delay transactions', async (_, mark) => {
  const database = await withTable()
  writeFileSync(marksOf(path), new Float64Array(Array.from({ length: 256 }, () => mark).flat()))
  // The database checks every millisecond whether others wait.
  const end = systemClock.now() + 20
  while (systemClock.now() < end) await database.run(() => undefined)
  expect(systemClock.now() - end).toBeLessThan(5000)
})

describe('a failing operation in a transaction', () => {
  test('rejects one caller alone, and nothing that it wrote stays', async () => {
    const database = await withTable()
    const insert = database.connection.prepare('insert into t values (?)')
    const outcomes = await Promise.allSettled([
      database.run(() => insert.run(1)),
      database.run(() => {
        insert.run(2)
        throw new Error('no')
      }),
      database.run(() => insert.run(3)),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(values(database)).toEqual([1, 3])
  })

  test('settles before the others of its transaction are repeated', async () => {
    const database = await withTable(standing)
    const insert = database.connection.prepare('insert into t values (?)')
    const told: string[] = []
    database.rolledBack = () => void told.push('rolled back')
    await Promise.allSettled([
      database.run(() => {
        told.push('first')
        insert.run(1)
      }),
      database.run(() => {
        throw new Error('no')
      }),
    ])
    expect(told).toEqual(['first', 'rolled back', 'first'])
    expect(values(database)).toEqual([1])
  })
})

describe('the write lock', () => {
  test('is awaited up to the time limit, and then nothing was written', async () => {
    const [one, other] = [await withTable(), await opened(100)]
    expect(one.connection.begin()).toBe(true)
    await expect(other.run(() => other.connection.exec('insert into t values (1)'))).rejects.toMatchObject({
      code: 'BUSY',
    })
    one.connection.exec('rollback')
    await other.run(() => other.connection.exec('insert into t values (2)'))
    expect(values(one)).toEqual([2])
  })
})

describe('closing', () => {
  test('finishes accepted work, and refuses later work', async () => {
    const database = await withTable()
    const insert = database.connection.prepare('insert into t values (?)')
    const taken = Array.from({ length: 40 }, (_, x) => database.run(() => insert.run(x)))
    const closing = database.close()
    await expect(Promise.all(taken)).resolves.toHaveLength(40)
    await expect(database.run(() => 1)).rejects.toMatchObject({ code: 'CLOSED' })
    await closing
    databases.length = 0
    expect(values(await opened())).toHaveLength(40)
  })
})

describe('files that are not there any more', () => {
  test.each([
    ['the database was deleted', () => unlinkSync(path)],
    ['its log was deleted', () => unlinkSync(`${path}-wal`)],
    ['its index was deleted', () => unlinkSync(`${path}-shm`)],
    ['the marks of waiters were deleted', () => unlinkSync(`${path}-turns`)],
    ['it was moved', () => renameSync(path, `${path}.old`)],
  ])('%s', async (_what, intercept) => {
    const database = await withTable()
    intercept()
    await pause(30)
    const message = expect.stringMatching(/was deleted, moved or replaced/) as string
    const refused = { code: 'UNAVAILABLE', message }
    await expect(database.run(() => 1)).rejects.toMatchObject(refused)
    await expect(database.run(() => 1)).rejects.toMatchObject(refused)
    expect(() => database.files.check()).toThrow(/was deleted/)
  })
})

test('the log is copied back before it grows forever', async () => {
  const database = await withTable()
  const { connection } = database
  await database.run(() => connection.exec('create table big (x integer primary key, y text)'))
  const put = connection.prepare('insert or replace into big values (?, ?)')
  let longest = 0
  for (let round = 0; round < 600; round++) {
    await database.run(() => {
      for (let x = 0; x < 50; x++) put.run(x, 'y'.repeat(900))
    })
    // Keeps the writer from getting far ahead of a slow disk.
    if (round % 10 === 0) await database.log.sync()
    longest = Math.max(longest, statSync(`${path}-wal`).size)
  }
  // 30,000 pages were written. SQLite copies the log when it has 4,000.
  expect(longest).toBeLessThan(12_000_000)
})
