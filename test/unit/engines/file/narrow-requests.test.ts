import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSqlite } from '../../../../src/engines/file/driver.js'
import { NarrowRequests } from '../../../../src/engines/file/narrow-requests.js'
import { SCHEMA } from '../../../../src/engines/file/schema.js'
import type { Request } from '../../../../src/engine/lock-table.js'

function request(id: string): Request {
  const phase = { phase: 'waiting', expires: 5000, lease: 30_000, number: 0, since: 0 } as const
  return { id, session: 's', claims: [{ key: 'key', mode: 'exclusive' }], label: undefined, ...phase }
}

test('requests that have not changed are the same after another process has written, and none after a rollback', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-requests-'))
  const connection = (await loadSqlite()).open(join(folder, 'some.db'))
  try {
    connection.exec(SCHEMA)
    const requests = new NarrowRequests(connection)
    requests.append(request('a'), 1)
    requests.append(request('b'), 2)
    requests.flush()
    const [first, second] = requests.queue('key')
    requests.outdated()
    const [again, other] = requests.queue('key')
    expect([again, other]).toEqual([first, second])
    expect(again).toBe(first)
    // An error has ended the operation before it could say that it changes the request.
    again!.request.phase = 'held'
    requests.forget()
    expect(requests.queue('key').map(each => each.request.phase)).toEqual(['waiting', 'waiting'])
  } finally {
    connection.close()
    rmSync(folder, { recursive: true })
  }
})
