import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.kill())

/** Settings that a role may have, each with a harmful value. */
const SETTINGS: readonly (readonly [string, string])[] = [
  ['array_nulls', 'off'],
  ['extra_float_digits', '-15'],
  ['datestyle', 'German, DMY'],
  ['intervalstyle', 'sql_standard'],
  ['bytea_output', 'escape'],
  ['standard_conforming_strings', 'off'],
  ['escape_string_warning', 'on'],
  ['backslash_quote', 'off'],
  ['transform_null_equals', 'on'],
  ['quote_all_identifiers', 'on'],
  ['xmloption', 'document'],
  ['check_function_bodies', 'off'],
  ['default_transaction_isolation', 'serializable'],
  ['default_transaction_isolation', 'repeatable read'],
  ['default_transaction_deferrable', 'on'],
  ['client_encoding', 'LATIN1'],
  ['timezone', 'Asia/Kathmandu'],
  ['lc_monetary', 'C'],
  ['lc_numeric', 'C'],
  ['row_security', 'off'],
  ['search_path', 'pg_catalog'],
  ['search_path', 'pg_temp, public, pg_catalog'],
  ['synchronous_commit', 'off'],
  ['session_replication_role', 'replica'],
  ['plan_cache_mode', 'force_generic_plan'],
  ['plan_cache_mode', 'force_custom_plan'],
  ['enable_indexscan', 'off'],
  ['enable_seqscan', 'off'],
  ['jit_above_cost', '0'],
  ['statement_timeout', '3s'],
  ['lock_timeout', '1ms'],
  ['idle_in_transaction_session_timeout', '500ms'],
  ['idle_session_timeout', '700ms'],
  ['work_mem', '64kB'],
  ['client_min_messages', 'debug5'],
  ['default_tablespace', ''],
  ['default_toast_compression', 'pglz'],
  ['password_encryption', 'md5'],
  ['DateStyle', 'SQL, YMD'],
  ['plpgsql.variable_conflict', 'use_column'],
]

const VALUES = [
  { text: 'null', nothing: null, list: ['NULL', null, '', '\\', "'", '"', '{}'] },
  'NULL',
  null,
  'null',
  0.1 + 0.2,
  Number.MAX_SAFE_INTEGER,
  '\\x41 \u00e9\u4e2d\u{1f600} \n\t',
]
const KEYS = ['null', 'NULL', 'a"b', "it's", 'back\\slash', '{1,2}', '\u00e9\u4e2d']

/** Uses every feature that reaches the server, with a box and another one that waits. */
async function works(box: Box, other: Box, url: string): Promise<void> {
  const store = box.store('s')
  for (const [index, key] of KEYS.entries()) {
    const value = VALUES[index % VALUES.length]!
    await store.put(key, value)
    expect((await other.store('s').get(key))?.value).toEqual(value)
    await box.mutex(key).run(() => undefined)
    await store.transaction([key, 'sum'], tx => tx.put('sum', [tx.get(key), index]), { id: key })
    await other.store('s').transaction([key, 'sum'], tx => tx.put('sum', 'again'), { id: key })
    expect((await store.get('sum'))?.value).toEqual([value, index])
    await box.limiter(key, { limit: 10, per: '1s' }).acquire()
  }
  const held = await box.mutex('a', 'b').acquire({ lease: '3s' })
  const waiting = other.mutex('b').acquire({ wait: '10s' })
  await new Promise(resolve => setTimeout(resolve, 1200))
  held.assertHeld()
  for await (const { holders } of box.inspect('a')) expect(holders[0]!.expiresIn).toBeGreaterThan(1000)
  const client = new pg.Client(url)
  await client.connect()
  await client.query('begin')
  await held.fence(client)
  await client.query('commit')
  await held.release()
  const next = await waiting
  expect(next.token).toBeGreaterThan(held.token)
  await next.release()
  await client.query('begin')
  await store.transaction(['within'], tx => tx.put('within', VALUES), { in: client })
  await client.query('commit')
  await client.end()
  expect((await other.store('s').get('within'))?.value).toEqual(VALUES)
  for await (const report of box.inspect()) expect(report.holders.length).toBe(0)
}

test.each(SETTINGS)(
  'a role with %s = %s has boxes that work, or that say what is wrong',
  async (name, value) => {
    const role = `r${randomUUID().slice(0, 8)}`
    const text = name === 'search_path' ? value : `'${value}'`
    await server.query(`create role ${role} login superuser; alter role ${role} set ${name} = ${text}`)
    const url = server.url.replace('tester@', `${role}@`)
    const own = `${url}?signalbox_schema=${role}`
    const box = await open(own)
    const other = await open(own)
    try {
      await works(box, other, url)
    } finally {
      await Promise.all([box.close(), other.close()])
    }
  },
)

test('a role that is read-only by default gets an error that says so, and none later', async () => {
  const role = `r${randomUUID().slice(0, 8)}`
  await (await open(server.url)).close()
  await server.query(
    `create role ${role} login superuser; alter role ${role} set default_transaction_read_only = on`,
  )
  const url = server.url.replace('tester@', `${role}@`)
  const opened = open(url)
  // Opening and writing either work, or reject with the name of the setting.
  const failure: unknown = await opened.then(
    async box => {
      try {
        await box.store('s').put('key', 1)
        return undefined
      } catch (error) {
        return error
      } finally {
        await box.close()
      }
    },
    (error: unknown) => error,
  )
  if (failure !== undefined)
    expect((failure as Error).message).toMatch(/default_transaction_read_only|read-only/)
})
