import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadSqlite, type Connection } from '../../../../src/engines/file/driver.js'
import { NarrowRequests } from '../../../../src/engines/file/narrow-requests.js'
import { SCHEMA } from '../../../../src/engines/file/schema.js'
import type { Request } from '../../../../src/engine/table-state.js'

let folder: string
let connection: Connection
/** The prepared statements, and the rows and values that they have read and written. */
let prepared: string[]
let moved: string[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-requests-'))
  connection = (await loadSqlite()).open(join(folder, 'some.db'))
  connection.exec(`pragma synchronous=off; ${SCHEMA}; begin`)
  prepared = []
  moved = []
})

afterEach(() => {
  connection.close()
  rmSync(folder, { recursive: true })
})

function request(number: number): Request {
  const phase = { phase: 'waiting', expires: 5000, lease: 30_000, number: 0, since: 0 } as const
  const id = `s.${number}`
  return { id, session: 's', claims: [{ key: 'key', mode: 'exclusive' }], label: undefined, ...phase }
}

function ids(requests: NarrowRequests): string[] {
  return [...(requests.queue('key') ?? [])].map(each => each.request.id)
}

/** Returns a connection that records the reads and writes of its statements. */
function watched(): Connection {
  return {
    ...connection,
    prepare: sql => {
      prepared.push(sql)
      const statement = connection.prepare(sql)
      const noted = <T>(rows: T, values: readonly unknown[]): T => {
        moved.push(JSON.stringify([rows ?? '', values]))
        return rows
      }
      return {
        get: (...values) => noted(statement.get(...values), values),
        all: (...values) => noted(statement.all(...values), values),
        run: (...values) => noted(statement.run(...values), values),
      }
    },
  }
}

function bytesMoved(work: () => void): number {
  moved = []
  work()
  return moved.join('').length
}

test('to add, find, change or remove a request costs as little among 3,000 as among 30', () => {
  const costs = [30, 3000].map(length => {
    connection.exec('delete from queues; delete from tails')
    const requests = new NarrowRequests(watched())
    for (let number = 1; number < length; number++) requests.append(request(number), number)
    requests.flush()
    const each = (work: () => void): number => {
      requests.outdated()
      return bytesMoved(() => {
        work()
        requests.flush()
      })
    }
    const last = request(length)
    return [
      each(() => requests.append(last, length)),
      each(() => requests.lastBefore(length, 'key', 4)),
      each(() => requests.changed(requests.get('key', 's.20')!)),
      each(() => requests.remove(requests.get('key', 's.20')!)),
      each(() => requests.remove(requests.get('key', 's.1')!)),
      each(() => requests.remove([...take(requests, 1)][0]!)),
    ]
  })
  costs[0]!.forEach((cost, index) => {
    expect(cost).toBeGreaterThan(0)
    expect(costs[1]![index]! / cost).toBeLessThan(1.2)
  })
})

test('no statement for a request looks at all that are behind the row', () => {
  new NarrowRequests(watched())
  const forOne = prepared.filter(
    sql => sql.includes('tails') && !sql.includes('instr') && !sql.includes('insert'),
  )
  expect(forOne).not.toEqual([])
  for (const sql of forOne) {
    const values = [...sql.matchAll(/\?/g)].map(() => '[]')
    const plan = connection.prepare(`explain query plan ${sql}`).all(...values)
    expect(plan.map(row => row.at(-1)).filter(step => /\btails\b/.test(String(step)))).toEqual([
      expect.stringMatching(/^SEARCH tails USING (PRIMARY KEY \(key=\? AND ticket|INDEX tails_id \(id=\?\))/),
    ])
  }
})

test.each([
  ['a row that cannot be read', `update queues set queue = '{' where key = 'key'`],
  ['a row of a tail that cannot be read', `update tails set entry = '{' || entry where ticket = 12`],
  ['a row that was deleted', `delete from queues where key = 'key'`],
])('the other requests of a session are found next to %s', (_, damage) => {
  const requests = new NarrowRequests(connection)
  for (let number = 1; number <= 12; number++) requests.append(request(number), number)
  const other = { ...request(13), claims: [{ key: 'other', mode: 'exclusive' as const }] }
  requests.append(other, 13)
  requests.flush()
  connection.exec(damage)
  requests.outdated()
  expect(requests.near('s').map(({ id }) => id)).toEqual(['s.13'])
})

test('the requests behind those of a row that was deleted are not in a later queue', () => {
  const requests = new NarrowRequests(connection)
  for (let number = 1; number <= 12; number++) requests.append(request(number), number)
  requests.flush()
  connection.exec('delete from queues')
  requests.outdated()
  expect(ids(requests)).toEqual([])
  for (let number = 21; number <= 32; number++) requests.append(request(number), number)
  requests.flush()
  requests.outdated()
  expect(ids(requests)).toEqual(Array.from({ length: 12 }, (_, index) => `s.${index + 21}`))
})

function* take(requests: NarrowRequests, count: number): Generator<Request> {
  let taken = 0
  for (const each of requests.queue('key')!) {
    if (taken++ === count) return
    yield each.request
  }
}
