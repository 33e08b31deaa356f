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
  test('statements without values are executed as a whole, or not at all', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    const insert = `insert into written values ('${name}') returning text`
    expect(await sql.run(`${insert}; select set_config('a.b', 'c', true); ${insert}`)).toBe(name)
    await expect(sql.run(`${insert}; select * from nothing`)).rejects.toMatchObject({ code: '42P01' })
    expect(await sql.query('select count(*)::text from written where text = $1::text', [name])).toBe('2')
  })
})

describe.each(served)('over $name', ({ connect }) => {
  test('statements that were prepared on another connection are executed', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    for (let time = 0; time < 3; time++) {
      expect(await sql.query('select $1::text', ['answer'])).toBe('answer')
      await sql.query('deallocate all', [])
    }
  })

  test('a statement whose connection is lost is indeterminate', async () => {
    await using opened = await disposable(connect())
    const slept = opened.sql.query(`select pg_sleep(10)::text, $1::text`, ['to be lost'])
    void terminateSleepers()
    await expect(slept).rejects.toMatchObject({ isUnclear: true })
  })
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
