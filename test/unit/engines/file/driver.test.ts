import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadSqlite, SqliteError } from '../../../../src/engines/file/driver.js'

test('a statement that failed takes the values of its next call', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-driver-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const connection = (await loadSqlite()).open(join(folder, 'some.db'))
  const sql = 'select ?, case ? when 0 then abs(-9223372036854775808) else 1 end'
  for (const method of ['get', 'all'] as const) {
    const statement = connection.prepare(sql)
    const call = (name: string, number: number): unknown => [statement[method](name, number)].flat(2)
    for (let round = 0; round < 3; round++) {
      expect(() => call(`fails ${round}`, 0)).toThrow(SqliteError)
      expect(call(`first ${round}`, 1)).toEqual([`first ${round}`, 1])
      expect(call(`second ${round}`, 1)).toEqual([`second ${round}`, 1])
    }
  }
  connection.close()
})
