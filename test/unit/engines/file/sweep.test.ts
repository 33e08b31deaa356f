import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadSqlite, type Connection } from '../../../../src/engines/file/driver.js'
import { SCHEMA } from '../../../../src/engines/file/schema.js'
import { Sweep } from '../../../../src/engines/file/sweep.js'

const STRETCH = 20
const NOW = 1000

let folder: string
let connection: Connection

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-sweep-'))
  connection = (await loadSqlite()).open(join(folder, 'test.db'))
  connection.exec(SCHEMA)
  connection.exec('create table kept (name text primary key, until integer not null) without rowid')
})

afterEach(() => {
  connection.close()
  rmSync(folder, { recursive: true })
})

/** Adds rows, of which every second one has expired. */
function fill(rows: number): void {
  const insert = connection.prepare('insert into kept values (?, ?)')
  for (let row = 0; row < rows; row++) insert.run(String(row).padStart(4, '0'), NOW + (row % 2))
}

function left(): number {
  return connection.prepare('select count(*) from kept').get()![0] as number
}

test('a process continues where another stopped, and from the end to the beginning', () => {
  fill(10 * STRETCH)
  const sweepOnce = (): void => new Sweep(connection, 'kept', ['name'], STRETCH).written(STRETCH / 2, NOW)
  const after: number[] = []
  for (let stretch = 0; stretch < 5; stretch++) {
    sweepOnce()
    after.push(left())
  }
  expect(after).toEqual([190, 180, 170, 160, 150])
  for (let stretch = 0; stretch < 6; stretch++) sweepOnce()
  expect(left()).toBe(5 * STRETCH)
  connection.exec(`insert into kept values ('0000', ${NOW})`)
  sweepOnce()
  expect(left()).toBe(5 * STRETCH)
})
