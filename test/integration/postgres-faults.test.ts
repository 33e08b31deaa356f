import { describe, expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { open, type Box } from '../../src/index.js'
import { smallDisk } from '../support/file/small-disk.js'
import { complaintOf } from '../support/redis/outcome.js'
import { startPostgres, startStandby } from '../support/servers/postgres.js'
import { unprivileged } from '../support/servers/unprivileged.js'

/** A lease that no test waits for. */
const LONG = { lease: '60s' } as const

/** Returns each kind of call that writes. */
function writes(box: Box): (() => Promise<unknown>)[] {
  return [
    () => box.mutex('key').acquire(),
    () => box.mutex('key').tryAcquire(),
    () => box.mutex('key', 'more').run(() => 'inside'),
    () => box.semaphore('permits', { max: 1 }).acquire(),
    () => box.store('s').put('key', 'other'),
    () => box.store('s').transaction(['key'], tx => tx.put('key', 'other')),
    () => box.limiter('api', { limit: 5, per: '1s' }).acquire(),
  ]
}

test('a server that accepts no more connections causes a typed error, and connected boxes continue', async () => {
  await using server = await startPostgres({
    settings: { max_connections: '10', superuser_reserved_connections: '0' },
  })
  await using box = await open(server.url)
  const held = await box.mutex('key').acquire(LONG)
  const pool = server.pool({ max: 20 })
  const taken = await Promise.allSettled(Array.from({ length: 20 }, () => pool.connect()))
  const other = `${server.url}?application_name=other`
  expect(await complaintOf(open(other))).toMatch(
    /^UNAVAILABLE: could not open a box on postgres:.*: the server has too many connections$/,
  )
  const sharing = await Promise.all(Array.from({ length: 10 }, () => open(server.url)))
  await Promise.all(sharing.map((each, index) => each.store('s').put(`key ${index}`, 1)))
  await Promise.all(sharing.map(each => each.close()))
  await held.release()
  for (const each of taken) if (each.status === 'fulfilled') each.value.release()
  await pool.end()
  await until(
    'there is room',
    async () => (await complaintOf(open(other).then(opened => opened.close()))) === undefined,
  )
})

describe('opening a box fails', () => {
  test('with a wrong password, which the error does not contain', async () => {
    await using server = await startPostgres()
    const [{ path } = { path: '' }] = await server.query<{ path: string }>(
      `create user locked password 'right'; grant create on database postgres to locked;
       select setting as path from pg_settings where name = 'hba_file'`,
    )
    await server.query(
      `copy (select unnest(array['host all locked 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 trust']))
       to '${path}'; select pg_reload_conf()`,
    )
    const url = (password: string): string => server.url.replace('tester', `locked:${password}`)
    let complaint: string | undefined
    await until('it connects', async () => {
      complaint = await complaintOf(open(url('secret')).then(box => box.close()))
      return complaint !== undefined
    })
    expect(complaint).toMatch(
      /^UNAVAILABLE: could not open a box on postgres:(?!.*secret).*: the password is wrong$/,
    )
    await using box = await open(url('right'))
    await box.mutex('key').run(() => undefined)
  })

  test('without the schema on a standby', async () => {
    await using server = await startPostgres()
    await using standby = await startStandby(server.address.port)
    expect(await complaintOf(open(standby.url))).toMatch(
      /^UNAVAILABLE: could not open a box on postgres:.*: the server is a standby, or read-only$/,
    )
  })
})

test('a read-only server rejects writes, and serves reads', async () => {
  await using server = await startPostgres()
  await using box = await open(server.url)
  await box.store('s').put('key', 'value')
  await server.query(`alter system set default_transaction_read_only = 'on'`)
  await server.query('select pg_reload_conf()')
  await until(
    'it rejects writes',
    async () => (await complaintOf(box.store('s').put('key', 'value'))) !== undefined,
  )
  for (const write of writes(box))
    expect(await complaintOf(write())).toMatch(/^UNAVAILABLE: .*: the server is a standby, or read-only$/)
  expect((await box.store('s').get('key'))!.value).toBe('value')
  await server.query('alter system reset default_transaction_read_only')
  await server.query('select pg_reload_conf()')
  await until(
    'it takes writes',
    async () => (await complaintOf(box.store('s').put('key', 'new'))) === undefined,
  )
  await box.mutex('key').run(() => undefined)
})

test.runIf(process.platform === 'linux' && unprivileged !== undefined)(
  'a full disk refuses what needs room, keeps what was acknowledged, and goes on when there is room',
  async () => {
    const disk = await smallDisk('32m')
    await using server = await startPostgres({ enter: disk.enter })
    const folder = `${disk.folder}/data`
    disk.run('install', '--directory', `--owner=${unprivileged!.uid}`, folder)
    await server.query(`create tablespace small location '${folder}'`)
    await server.query('create database small tablespace small')
    await using box = await open(server.url.replace('/postgres', '/small'))
    const store = box.store('s')
    await store.put('key', 'value')
    const held = await box.mutex('key').acquire(LONG)
    disk.fill()
    const large = Array.from({ length: 50_000 }, () => Math.random()).join()
    expect(await complaintOf(store.put('large', large))).toMatch(
      /^UNAVAILABLE: could not write "[^"]+" on postgres:.*: the disk is full$/,
    )
    expect((await store.get('key'))!.value).toBe('value')
    disk.free()
    await store.put('large', large)
    expect((await store.get('large'))!.value).toBe(large)
    held.assertHeld()
    await held.release()
  },
)

test.each(['LATIN1', 'SQL_ASCII'])('a database in %s shows its locks', async encoding => {
  await using server = await startPostgres()
  await server.query(`create database other encoding '${encoding}' template template0`)
  await using box = await open(server.url.replace(/postgres$/, 'other'))
  await box.mutex('key').run(async () => {
    const shown = []
    for await (const { key } of box.inspect()) shown.push(key)
    expect(shown).toEqual(['key'])
  })
})

test.each(['repeatable read', 'serializable'])(
  'boxes whose user has %s as its isolation make new rows together',
  async isolation => {
    await using server = await startPostgres()
    await server.query(`alter user tester set default_transaction_isolation = '${isolation}'`)
    const boxes = await Promise.all(Array.from({ length: 3 }, () => open(server.url)))
    for (let round = 0; round < 30; round++)
      await Promise.all(boxes.map(box => box.mutex(`key-${round}`).run(() => undefined)))
    await Promise.all(boxes.map(box => box.close()))
  },
)
