import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { overPg, overPostgres } from '../../src/engines/postgres/clients/installed-client.js'
import { detectClient } from '../../src/engines/postgres/clients/detect-client.js'
import type { SqlClient } from '../../src/engines/postgres/clients/sql-client.js'
import { parsePostgresUrl } from '../../src/engines/postgres/postgres-url.js'
import { givenClients } from '../support/postgres/given-clients.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

const TABLE = 'create table written (text text)'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
  const client = new pg.Client(server.address)
  await client.connect()
  await client.query(TABLE)
  await client.end()
})
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
  test('a statement takes text and returns the first column of the first row', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    expect(await sql.query('select $1::text || $2::text', ['a ', '"ü\n'])).toBe('a "ü\n')
    expect(await sql.query('select null::text', [])).toBeNull()
    expect(await sql.query('select 1 where false', [])).toBeUndefined()
  })

  test('an error of the server has its code, and the statement was not executed', async () => {
    await using opened = await disposable(connect())
    await expect(opened.sql.query('select * from nothing', [])).rejects.toMatchObject({
      code: '42P01',
      isUnclear: false,
    })
    await expect(opened.sql.run('select 1; select 1 / 0')).rejects.toMatchObject({ code: '22012' })
  })

  test('statements without values are executed as a whole, or not at all', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    const insert = `insert into written values ('${name}') returning text`
    expect(await sql.run(`${insert}; select set_config('a.b', 'c', true); ${insert}`)).toBe(name)
    await expect(sql.run(`${insert}; select * from nothing`)).rejects.toMatchObject({ code: '42P01' })
    expect(await sql.query('select count(*)::text from written where text = $1::text', [name])).toBe('2')
  })

  test('messages are received until the caller stops listening', async () => {
    await using opened = await disposable(connect())
    const { sql } = opened
    const messages: string[] = []
    const listening = await sql.listen(
      'A channel',
      message => messages.push(message),
      () => messages.push('lost'),
    )
    await sql.query(`select pg_notify('A channel', $1::text)`, ['one'])
    await expect.poll(() => messages).toEqual(['one'])
    await listening.stop()
    await sql.query(`select pg_notify('A channel', $1::text)`, ['two'])
    await sql.query('select 1', [])
    expect(messages).toEqual(['one'])
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
    setTimeout(() => void terminateSleepers(), 100)
    await expect(slept).rejects.toMatchObject({ isUnclear: true })
  })
})

async function disposable(opening: Promise<Opened>) {
  const opened = await opening
  return { ...opened, [Symbol.asyncDispose]: opened.close }
}

async function terminateSleepers(): Promise<void> {
  const client = new pg.Client(server.address)
  await client.connect()
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep%'`,
  )
  await client.end()
}
