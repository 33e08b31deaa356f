import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { failure } from '../support/failure.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

const layout1 = readFileSync(new URL('../support/postgres/schema-1.sql', import.meta.url), 'utf8')

/** Starts a server with a schema of layout 1, and data of its boxes. */
async function withLayout1(lockedFor: number): Promise<PostgresServer> {
  const server = await startPostgres()
  const queue = JSON.stringify([
    ['box.1', 'box', 'host', 1, 'held', Date.now() + lockedFor, 30_000, 5, null, Date.now(), ['key']],
  ])
  await server.query(`
    ${layout1}
    insert into signalbox.names (name, id) values ('value/s/key', 1), ('value/s/gone', 2), ('lock/key', 3), ('limit/api', 4);
    insert into signalbox.state (id, version, data) values
      (1, 7, E'[7,["box",1]]\\n{"euros":3}'), (2, 8, E'[8]\\n'), (3, 5, '${queue}'), (4, 9, '1 {}');
    insert into signalbox.recorded (mark, until) values (
      encode(substr(sha256(E's/key\\\\000first'), 1, 16), 'hex')::uuid, clock_timestamp() + interval '1 day')`)
  return server
}

test('a schema of layout 1 is upgraded to layout 2 with its values and ids', async () => {
  await using server = await withLayout1(-1)
  await using box = await open(server.url)
  const store = box.store('s')
  expect(await store.get('key')).toMatchObject({ value: { euros: 3 }, version: 7 })
  expect(await store.get('gone')).toBeUndefined()
  const again = await store.transaction(['key'], tx => tx.put('key', 0), { id: 'first' })
  expect(again).toMatchObject({ applied: false })
  await box.mutex('key').run(() => undefined)
  await box.limiter('api', { limit: 1, per: '1s' }).acquire()
  await using other = await open(server.url)
  expect((await other.store('s').get('key'))?.value).toEqual({ euros: 3 })
})

test('a schema of layout 1 is unchanged while one of its boxes holds a lock', async () => {
  await using server = await withLayout1(60_000)
  await expect(open(server.url)).rejects.toMatchObject(
    failure('UNAVAILABLE', 'an older version of Signalbox holds locks in the table signalbox.state'),
  )
  expect(await server.query('select signalbox.version()')).toEqual([{ version: 1 }])
})

test('a box whose rights were granted before a table was added makes and removes rows after an upgrade', async () => {
  await using server = await startPostgres()
  await (await open(server.url)).close()
  await server.query(`
    create role app login; grant usage on schema signalbox to app;
    grant select, insert, update, delete on all tables in schema signalbox to app;
    grant usage on all sequences in schema signalbox to app`)
  await using box = await open(server.url.replace('tester', 'app'))
  // Restores the state before these tables were added.
  await server.query(`
    revoke all on signalbox.permit_requests, signalbox.signs from app; drop table signalbox.tails cascade;
    comment on function signalbox.version() is 'revision 8, 0'`)
  await (await open(server.url)).close()
  await box.mutex('a').run(() => undefined)
  await box.mutex('a', 'b').run(() => undefined)
  await box.store('s').put('a', 1)
  await box.store('s').transaction(['a', 'b'], tx => tx.put('b', 1), { id: 'once' })
  await box.store('s').delete('a')
  // Another box waits. Its signs of life cover the request beyond its own lease.
  await using other = await open(server.url)
  const held = await box.mutex('a').acquire()
  const waiting = other.mutex('a').acquire({ lease: '1s' })
  await until('its own time is over', async () => {
    const [row] = await server.query<{ over: boolean }>(
      'select q.number = -1 and q.expires < signalbox.clock() as over from signalbox.data d, unnest(d.queue) q where q.phase = 0',
    )
    return row?.over === true
  })
  for await (const { waiters } of box.inspect('a')) expect(waiters).toHaveLength(1)
  // More requests wait than fit into a row of `data`.
  const others = Array.from({ length: 12 }, () => box.mutex('a').acquire({ ownRequest: true }))
  await until('all wait', async () => {
    for await (const { waiters } of box.inspect('a', { exact: true })) return waiters.length === 13
    return false
  })
  await held.release()
  await (await waiting).release()
  for (const other of others) await (await other).release()
})
