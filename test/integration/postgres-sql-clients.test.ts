import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, describe, expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { systemClock } from '../../src/base/clock.js'
import { overPg, overPostgres } from '../../src/engines/postgres/clients/installed-client.js'
import { detectClient } from '../../src/engines/postgres/clients/detect-client.js'
import type { SqlClient } from '../../src/engines/postgres/clients/sql-client.js'
import { parsePostgresUrl } from '../../src/engines/postgres/postgres-url.js'
import { givenClients } from '../support/postgres/given-clients.js'
import { startPostgres } from '../support/servers/postgres.js'

const TABLE = 'create table written (text text)'

const server = await startPostgres()
await server.query(TABLE)
afterAll(async () => {
  await server.kill()
  await (await pglite)?.close()
})

interface Opened {
  readonly sql: SqlClient
  close(): Promise<void>
}

const place = () => parsePostgresUrl(server.url)
const own = (sql: SqlClient): Opened => ({ sql, close: () => sql.close() })

const served: readonly { readonly name: string; connect(): Promise<Opened> }[] = [
  { name: 'pg', connect: () => Promise.resolve(own(overPg(place(), pg, systemClock))) },
  { name: 'postgres', connect: () => Promise.resolve(own(overPostgres(place(), postgres, systemClock))) },
  ...givenClients.map(({ name, connect }) => ({
    name: `${name} that is given`,
    async connect() {
      const { client, close } = await connect(server.url)
      const sql = await detectClient(client, 'signalbox', systemClock)
      return { sql, close: () => sql.close().then(close) }
    },
  })),
]

let pglite: Promise<PGlite> | undefined

const lite = {
  name: 'a PGlite',
  async connect(): Promise<Opened> {
    pglite ??= PGlite.create().then(async client => {
      await client.exec(TABLE)
      return client
    })
    return own(await detectClient(await pglite, 'signalbox', systemClock))
  },
}

describe.each([...served, lite])('over $name', ({ name, connect }) => {
  test('statements do not run in an open transaction of another caller', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    const others: Promise<unknown>[] = []
    await expect(
      sql.transaction(async query => {
        await query('select 1', [])
        others.push(sql.query('insert into written values ($1::text)', [`${name} 2`]))
        await query('select * from nothing', [])
      }),
    ).rejects.toMatchObject({ code: '42P01' })
    await Promise.all(others)
    expect(await sql.query('select count(*)::text from written where text = $1::text', [`${name} 2`])).toBe(
      '1',
    )
  })
})

describe.each(served)('over $name', ({ name, connect }) => {
  test('statements, and transactions, are executed although their prepared statements are gone', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    const text = `${name} prepared`
    for (let time = 0; time < 3; time++) {
      expect(await sql.query('select $1::text', ['answer'])).toBe('answer')
      await sql.query('deallocate all', [])
      await sql.transaction(async query => {
        await query('insert into written values ($1::text)', [text])
        await query('deallocate all', [])
      })
    }
    expect(await sql.query('select count(*)::text from written where text = $1::text', [text])).toBe('3')
  })

  test('losing a connection within a transaction ends that transaction, and nothing else', async () => {
    await using opened = await disposable(connect())
    const lost = opened.sql.transaction(async query => {
      const slept = query('select pg_sleep(10)::text', [])
      void terminateSleepers()
      await slept
    })
    await expect(lost).rejects.toMatchObject({ isUnclear: false })
    // An error without a listener, or a write to a closed socket, would occur within this time.
    await new Promise(resolve => setTimeout(resolve, 100))
  })

  test('a statement whose connection is lost is indeterminate', async () => {
    await using opened = await disposable(connect())
    const slept = opened.sql.query(`select pg_sleep(10)::text, $1::text`, ['to be lost'])
    void terminateSleepers()
    await expect(slept).rejects.toMatchObject({ isUnclear: true })
  })
})

test('a transaction without a reply is rolled back, and the next ones are executed', async () => {
  const done = served.map(async ({ name, connect }) => {
    await using opened = await disposable(connect())
    const { sql } = opened
    const late = sql.transaction(async query => {
      await query('insert into written values ($1::text)', [`${name} late`])
      await query('select pg_sleep(6)::text', [])
    })
    await expect(late, name).rejects.toMatchObject({ message: 'no answer within 5000 ms', isUnclear: false })
    await new Promise(resolve => setTimeout(resolve, 1500))
    const count = 'select count(*)::text from written where text = $1::text'
    expect(await sql.query(count, [`${name} late`]), name).toBe('0')
  })
  await Promise.all(done)
})

async function disposable(opening: Promise<Opened>) {
  const opened = await opening
  return { ...opened, [Symbol.asyncDispose]: opened.close }
}

/** Waits for statements that sleep, and ends their connections. */
async function terminateSleepers(): Promise<void> {
  const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
    where state = 'active' and query like 'select pg_sleep%'`
  await until('a statement sleeps', async () => (await server.query(terminate)).length > 0)
}
