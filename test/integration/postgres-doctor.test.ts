import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, expect, test, vi } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { SCHEMA_REVISION } from '../../src/engines/postgres/schema.js'
import { diagnose, open, UnavailableError, type Diagnosis } from '../../src/index.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { replacingRelay } from '../support/servers/replacing-relay.js'
import { startPgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres, startStandby } from '../support/servers/postgres.js'
import { CommandPlace } from './command-line.js'

/** Makes the server wait for the disk, which test servers do not do by default. */
const SAFE = { settings: { fsync: 'on' } }

const server = await startPostgres(SAFE)
const admin = server.pool()
afterAll(() => admin.end().then(() => server.kill()))

/** Creates a database in which the doctor finds no fault once a box has been opened. */
async function database(on = admin, options = ''): Promise<string> {
  const name = `d${randomUUID().slice(0, 8)}`
  await on.query(`create database ${name} ${options}`)
  await on.query(`alter database ${name} set idle_in_transaction_session_timeout = '30s'`)
  return name
}

function urlOf(name: string, { url }: { readonly url: string } = server): string {
  return url.replace(/\/postgres$/, `/${name}`)
}

/** Creates such a database, and opens a box in it. */
async function usedDatabase(on = admin, at = server, options = ''): Promise<string> {
  const name = await database(on, options)
  await (await open(urlOf(name, at))).close()
  return name
}

async function query(name: string, text: string): Promise<void> {
  await using client = await server.client({ database: name })
  await client.query(text)
}

function ids({ findings }: Diagnosis): string[] {
  return findings.map(({ id }) => id)
}

async function found(url: string): Promise<string[]> {
  return ids(await diagnose(url))
}

/** Runs a task while a setting of the whole server has another value. */
async function withSetting(
  on: pg.Pool,
  name: string,
  value: string,
  task: () => Promise<void>,
): Promise<void> {
  const set = async (change: string): Promise<void> => {
    const loaded = 'select pg_conf_load_time()::text as at'
    const { rows: before } = await on.query<{ at: string }>(loaded)
    await on.query(`alter system ${change}`)
    await on.query('select pg_reload_conf()')
    await until(
      'it is loaded',
      async () => (await on.query<{ at: string }>(loaded)).rows[0]!.at !== before[0]!.at,
    )
  }
  await set(`set ${name} = ${value}`)
  try {
    await task()
  } finally {
    await set(`reset ${name}`)
  }
}

function through(port: number, name: string): string {
  return urlOf(name).replace(String(server.address.port), String(port))
}

test('there are no findings if all is well, and facts are reported', async () => {
  const name = await usedDatabase()
  const { facts, findings } = await diagnose(urlOf(name))
  expect(findings).toEqual([])
  expect(facts).toEqual([
    expect.stringMatching(
      new RegExp(
        `^postgres://.*/${name}: PostgreSQL \\d+.*, database ${name}, primary, 0 standbys, clock .* (ahead|behind)$`,
      ),
    ),
    `schema signalbox: version 2, revision ${SCHEMA_REVISION} of the functions`,
    expect.stringMatching(/^schema signalbox: \d+ rows and \d+ dead rows/),
    'NOTIFY arrives',
  ])
  await using place = new CommandPlace(urlOf(name))
  const { stdout, stderr } = await place.signalbox('doctor')
  expect(stderr).toBe('')
  expect(stdout).toContain('a round trip takes')
  expect(stdout).not.toMatch(/^no-/m)
})

test('a database without the schema is left without it', async () => {
  const name = await database()
  expect(await found(urlOf(name))).toEqual(['no-schema'])
  await using place = new CommandPlace(urlOf(name))
  const { status, stdout } = await place.signalbox('doctor')
  expect(status).toBe(1)
  expect(stdout).toContain('fix: apply what `signalbox schema postgres` prints')
  expect(await found(urlOf(name))).toEqual(['no-schema'])
})

test.each([
  [
    'newer-schema',
    "create or replace function signalbox.version() returns int language sql as 'select 1000'",
    /newer version/,
  ],
  [
    'search-path',
    'alter function signalbox.reserved_or_gone(text[], text[]) reset search_path',
    /: reserved_or_gone$/,
  ],
  ['endless-transactions', 'alter database NAME reset idle_in_transaction_session_timeout', /./],
  ['late-commit', 'alter database NAME set synchronous_commit = off', /./],
])('%s is found after: %s', async (id, statement, how) => {
  const name = await usedDatabase()
  await query(name, statement.replace('NAME', name))
  const { findings } = await diagnose(urlOf(name))
  expect(findings).toMatchObject([{ id, how: expect.stringMatching(how) as string }])
})

test('a server before 13 is reported, and no box can be opened on it', async () => {
  const name = await usedDatabase()
  const { rows } = await admin.query<{ server_version: string }>('show server_version')
  const version = rows[0]!.server_version
  const url = through(await replacingRelay(server.address.port, version, version.replace(/^\d+/, '12')), name)
  expect(await found(url)).toEqual(['version'])
  const error = await open(url).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(UnavailableError)
  expect((error as Error).message).toMatch(/is PostgreSQL 12\..*, and Signalbox needs 13 or later$/)
})

test('missing rights are reported', async () => {
  const name = await usedDatabase()
  const role = name.replace('d', 'r')
  await query(name, `create role ${role} login`)
  const { findings } = await diagnose(urlOf(name).replace('tester', role))
  expect(findings).toMatchObject([
    {
      id: 'missing-rights',
      how: expect.stringContaining('select, insert, update, delete on signalbox.data') as string,
    },
  ])
  await using place = new CommandPlace(urlOf(name).replace('tester', role))
  const { stdout } = await place.signalbox('doctor')
  expect(stdout).toMatch(/^missing-rights: .*lacks usage on schema[^]*^no-entry: /m)
})

test('a database with another encoding is reported', async () => {
  const name = await usedDatabase(admin, server, "encoding 'LATIN1' template template0")
  expect(await found(urlOf(name))).toEqual(['encoding'])
})

test('settings of the server that lose data or leave dead rows are reported', async () => {
  const name = await usedDatabase()
  const expected = { full_page_writes: 'torn-pages', autovacuum: 'no-autovacuum' }
  for (const [setting, id] of Object.entries(expected))
    await withSetting(admin, setting, 'off', async () => expect(await found(urlOf(name))).toEqual([id]))
  expect(await found(urlOf(name))).toEqual([])

  await using careless = await startPostgres({ settings: { fsync: 'off' } })
  expect(await found(urlOf('postgres', careless))).toContain('no-fsync')
})

test('autovacuum that is off for one table is reported, in every spelling', async () => {
  const name = await usedDatabase()
  for (const off of ['false', 'off']) {
    await query(name, `alter table signalbox.data set (autovacuum_enabled = ${off})`)
    const { findings } = await diagnose(urlOf(name))
    expect(findings).toMatchObject([{ id: 'no-autovacuum' }])
    await query(name, findings[0]!.fix)
    expect(await found(urlOf(name))).toEqual([])
  }
})

test('a transaction that keeps dead rows for more than a minute is reported, and an idle one is not', async () => {
  const clock = new FakeClock()
  await using late = await startPostgres({ ...SAFE, clock })
  await using pool = late.pool()
  const name = await usedDatabase(pool, late)
  clock.set(-120_000)
  await using reader = await late.client({ database: name })
  await using idle = await late.client({ database: name })
  await reader.query('begin isolation level repeatable read')
  await reader.query('select 1')
  await idle.query('begin')
  clock.set(0)
  const { findings } = await diagnose(urlOf(name, late))
  expect(findings).toMatchObject([
    {
      id: 'open-transactions',
      how: expect.stringMatching(/: process \d+ of tester, idle in transaction for 2 min$/) as string,
    },
  ])
  await reader.query('commit')
  expect(await found(urlOf(name, late))).toEqual([])

  // A user who may not see the transactions of others gets a fact instead of a finding.
  await reader.query('begin isolation level repeatable read')
  await reader.query('select 1')
  await pool.query('create role other login')
  const { facts } = await diagnose(urlOf(name, late).replace('tester', 'other'))
  expect(facts).toContain(
    '1 transactions of other users are hidden; a member of pg_read_all_stats could see them',
  )
})

test('a pooler in transaction mode is reported', async () => {
  const name = await usedDatabase()
  await using pooler = await startPgBouncer(server)
  const { facts, findings } = await diagnose(urlOf(name, pooler))
  expect(findings).toMatchObject([{ id: 'no-notify', promises: ['P5'] }])
  expect(facts).toContain('NOTIFY does not arrive')
})

test('a queue of NOTIFY that a session does not read is reported', async () => {
  const name = await usedDatabase()
  await using stuck = await server.client({ database: name })
  await stuck.query('listen a')
  await stuck.query('begin')
  await query(name, "select pg_notify('a', i || repeat('x', 7900)) from generate_series(1, 15000) i")
  expect(await found(urlOf(name))).toEqual(['full-queue'])
  await stuck.query('commit')
  expect(await found(urlOf(name))).toEqual([])
})

test('a wrong clock is reported', async () => {
  const url = urlOf(await usedDatabase())
  const now = Date.now
  vi.spyOn(Date, 'now').mockImplementation(() => now() - 3_600_000)
  expect(await found(url)).toEqual(['clock'])
})

test('a standby is reported, and a primary whose commits wait for none', async () => {
  await using primary = await startPostgres(SAFE)
  await using standby = await startStandby(primary.address.port, SAFE)
  await using pool = primary.pool()
  const name = await usedDatabase(pool, primary)
  await primary.copied()
  const url = urlOf(name, primary)
  expect(await found(url)).toEqual(['asynchronous-standby'])
  expect(await found(urlOf(name, standby))).toEqual(['standby'])
  await using place = new CommandPlace(urlOf(name, standby))
  expect((await place.signalbox('doctor')).stdout).toMatch(/^standby: .*[^]*^no-entry: .*standby/m)

  await withSetting(pool, 'synchronous_standby_names', "'*'", async () => {
    expect(await found(url)).toEqual([])
    await pool.query(`alter database ${name} set synchronous_commit = local`)
    expect(await found(url)).toEqual(['asynchronous-standby'])
  })
})

test('a subscriber to some tables does not count as a standby', async () => {
  await using publisher = await startPostgres({ settings: { ...SAFE.settings, wal_level: 'logical' } })
  await using pool = publisher.pool()
  const [from, to] = [await usedDatabase(pool, publisher), await usedDatabase(pool, publisher)]
  await using source = await publisher.client({ database: from })
  await source.query('create publication p')
  await source.query("select pg_create_logical_replication_slot('s', 'pgoutput')")
  await using target = await publisher.client({ database: to })
  const { host, port, user } = publisher.address
  await target.query(
    `create subscription s connection 'host=${host} port=${port} user=${user} dbname=${from}' publication p
     with (create_slot = false)`,
  )
  const senders = 'select count(*)::int as count from pg_stat_replication'
  await until('it subscribes', async () => (await pool.query(senders)).rows[0].count === 1)
  expect(await found(urlOf(from, publisher))).toEqual([])
})
