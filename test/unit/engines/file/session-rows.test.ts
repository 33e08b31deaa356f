import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSqlite, type Connection } from '../../../../src/engines/file/driver.js'
import { SCHEMA } from '../../../../src/engines/file/schema.js'
import { SessionRows } from '../../../../src/engines/file/session-rows.js'

/** Returns the connection, and records the rows that its statements read. */
function watched(connection: Connection, rows: unknown[]): Connection {
  return {
    exec: sql => connection.exec(sql),
    begin: () => connection.begin(),
    close: () => connection.close(),
    prepare: sql => {
      const statement = connection.prepare(sql)
      const noted = <T>(found: T): T => {
        rows.push(...[found ?? []].flat())
        return found
      }
      return {
        get: (...values) => noted(statement.get(...values)),
        all: (...values) => noted(statement.all(...values)),
        run: (...values) => statement.run(...values),
      }
    },
  }
}

test('a sign reads nothing about other sessions, and their signs are read once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-signs-'))
  const connection = (await loadSqlite()).open(join(folder, 'some.db'))
  connection.exec(SCHEMA)
  const read: unknown[] = []
  const signs = new SessionRows(watched(connection, read))
  for (let session = 0; session < 100; session++) signs.see(`s${session}`, session)
  signs.outdated()
  signs.see('s1', 1000)
  expect(read).toEqual([])
  for (let look = 0; look < 2; look++) expect([signs.seen('s1'), signs.seen('s2')]).toEqual([1000, 2])
  expect(signs.seen('none')).toBe(-Infinity)
  expect(read).toEqual([2])
  new SessionRows(connection).see('s2', 2000)
  signs.outdated()
  expect(signs.seen('s2')).toBe(2000)
  signs.leave('s2')
  expect(signs.seen('s2')).toBe(-Infinity)
  connection.close()
  rmSync(folder, { recursive: true })
})
