import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { exclusion } from '../../packages/conformance/src/exclusion.js'
import { fencing } from '../../packages/conformance/src/fencing.js'
import { keptIds } from '../../packages/conformance/src/kept-ids.js'
import { limits } from '../../packages/conformance/src/limits.js'
import { keysOf, listed } from '../../packages/conformance/src/listing.js'
import { release } from '../../packages/conformance/src/release.js'
import { safeState } from '../../packages/conformance/src/safe-state.js'
import { queued } from '../../packages/conformance/src/time.js'
import { waking } from '../../packages/conformance/src/waking.js'
import { openPostgres } from '../../src/engines/postgres/open.js'
import { printedSchema } from '../../src/engines/postgres/printed-schema.js'
import { diagnose, open, UnavailableError } from '../../src/index.js'
import { postgres } from '../contract/postgres-fixture.js'
import { contractParts } from '../contract/suite.js'
import { startPostgres } from '../support/servers/postgres.js'
import { CommandPlace, PATIENCE } from './command-line.js'

const server = await startPostgres()
const owner = server.pool()
afterAll(() => owner.end().then(() => server.kill()))
// Revokes a default: every role may execute every function.
await owner.query('alter default privileges revoke execute on functions from public')

/** Creates a role that may only connect. Returns it with the URL of a schema that does not exist yet. */
async function place() {
  const name = `s${randomUUID().slice(0, 8)}`
  await owner.query(`create role ${name} login`)
  return { name, url: `${server.url.replace('tester', name)}?signalbox_schema=${name}` }
}

/** Returns the grants for a role of boxes in the printed schema, one for each privilege. */
function printedGrants(schema: string): string[] {
  const grants = [...printedSchema(schema).matchAll(/^-- grant (.*) on (.*) to app;$/gm)]
  return grants.flatMap(([, rights, object]) =>
    rights!.split(', ').map(right => `${right} on ${object!} to ${schema}`),
  )
}

/** Creates such a role, and its schema by its owner, with exactly the privileges that are printed with the schema. */
async function grantedPlace() {
  const { name, url } = await place()
  await owner.query(printedSchema(name))
  for (const grant of printedGrants(name)) await owner.query(`grant ${grant}`)
  return { name, url }
}

contractParts(
  {
    ...postgres,
    name: 'a role with exactly the rights that are printed',
    async start() {
      const { url } = await grantedPlace()
      return { url, engine: () => openPostgres(url), close: () => undefined }
    },
  },
  exclusion,
  fencing,
  waking,
  release,
  safeState,
  keptIds,
  limits,
)

test.each(['user', 'order'])('a schema may have the name of the keyword %s', async name => {
  await owner.query(`${printedSchema(name)}; drop schema "${name}" cascade`)
  await using box = await open(`${server.url}?signalbox_schema=${name}`)
  await box.store('s').transaction(['a'], transaction => transaction.put('a', 1))
  expect((await box.store('s').get('a'))?.value).toBe(1)
  const { findings } = await diagnose(`${server.url}?signalbox_schema=${name}`)
  expect(findings.map(({ id }) => id)).not.toContain('no-schema')
})

describe('the printed schema', () => {
  test('can be applied twice by its owner, and the second time changes nothing', async () => {
    const { name, url } = await place()
    await using command = new CommandPlace()
    const { status, stdout, stderr } = await command.signalbox('schema', 'postgres', '--schema', name)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toBe(printedSchema(name))
    await owner.query(stdout)
    const mine = `${server.url}${new URL(url).search}`
    await using box = await open(mine)
    await box.store('prices').put('bread', 2)
    const { token } = await box.mutex('a').acquire()
    await owner.query(stdout)
    expect((await box.store('prices').get('bread'))?.value).toBe(2)
    await using other = await open(mine)
    expect(await other.mutex('a').tryAcquire()).toBeUndefined()
    expect((await owner.query(`select token from ${name}.locks`)).rows).toEqual([{ token: String(token) }])
  })

  test('has the default name, unless another one is given, and rejects an invalid name', async () => {
    await using command = new CommandPlace()
    expect((await command.signalbox('schema', 'postgres')).stdout).toBe(printedSchema('signalbox'))
    const bad = await command.signalbox('schema', 'postgres', '--schema', 'a; drop table b')
    expect(bad).toMatchObject({ status: 2, stdout: '' })
    expect(await command.signalbox('schema', 'redis')).toMatchObject({ status: 2, stdout: '' })
  })

  test('is named by the error for a role that may not create a schema', async () => {
    const { url } = await place()
    const error = await open(url).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(UnavailableError)
    expect((error as Error).message).toContain('`signalbox schema postgres`')
  })

  test('is named by the error for a role that lacks one of its rights', async () => {
    const { name, url } = await grantedPlace()
    const grants = printedGrants(name)
    expect(grants.length).toBeGreaterThan(10)
    await (await open(url)).close()
    for (const grant of grants) {
      await owner.query(`revoke ${grant.replace(' to ', ' from ')}`)
      const error = await open(url).catch((error: unknown) => error)
      expect(error, grant).toBeInstanceOf(UnavailableError)
      const lacking = /^(\w+) on (?:all functions in schema|sequence|)/.exec(grant)![1]!
      expect((error as Error).message).toMatch(
        new RegExp(`lacks .*${lacking} on .*\`signalbox schema postgres\``),
      )
      await owner.query(`grant ${grant}`)
    }
    await (await open(url)).close()
  })
})

test('a waiter whose own time was over long ago stays while signs of life of its box cover it', async () => {
  const { name, url } = await grantedPlace()
  await using box = await open(url)
  await using other = await open(url)
  const held = await box.mutex('key').acquire()
  const waiting = other.mutex('key').acquire()
  await queued(box, 'key', 1)
  const swept = (number: number): string => `
    delete from ${name}.signs; insert into ${name}.signs
      select (d.queue[2]).session, ${name}.clock() from ${name}.data d where d.name = 'lock/key';
    update ${name}.data d set queue[2].number = ${number}, queue[2].expires = ${name}.clock() - 150000;
    update ${name}.keys set due = 1;
    select ${name}.sweep(1000, '{0,0}')`
  const requests = async (): Promise<number> =>
    (await owner.query<{ count: number }>(`select cardinality(queue) as count from ${name}.data`)).rows[0]!
      .count
  await owner.query(swept(-1))
  expect(await requests()).toBe(2)
  await owner.query(swept(0))
  expect(await requests()).toBe(1)
  await held.release()
  await (await waiting).release()
})

test('rows of dead processes are deleted although no client asks for their keys, except those bound to a transaction', async () => {
  const { name, url } = await grantedPlace()
  await using box = await open(url, { label: 'alive' })
  await using dead = await open(url)
  const lease = { lease: '30s', wait: '5s' } as const
  await Promise.all([
    dead.mutex('one').acquire(lease),
    dead.mutex('two', 'three').acquire(lease),
    dead.semaphore('permits', { max: 2 }).acquire(lease),
    dead.mutex('beside', 'bound').acquire(lease),
    dead.semaphore('shared', { max: 2 }).acquire(lease),
    box.semaphore('shared', { max: 2 }).acquire(lease),
    box.mutex('alive', 'also').acquire(lease),
  ])
  void dead
    .mutex('one')
    .acquire({ wait: '30s' })
    .catch(() => undefined)
  const pool = server.pool({ user: name })
  const client = await pool.connect()
  // Simulates a process that was killed two minutes ago.
  await owner.query(`
    update ${name}.keys set due = 1 where due is not null;
    update ${name}.data d set version = 1, queue = array(
      select row(u.id, u.first, u.session, u.host, u.pid, u.label, u.phase,
          case when u.label = 'alive' then u.expires else u.expires - 150000 end, u.lease, u.number, u.since, u.claims)::${name}.request
        from unnest(d.queue) with ordinality
          u(id, first, session, host, pid, label, phase, expires, lease, number, since, claims, place) order by u.place)
      where d.name !~ 'alive|also'`)
  await client.query('begin')
  await client.query(`select from ${name}.data where name = 'lock/bound' for key share`)
  const left = async (): Promise<unknown[]> => {
    await pool.query(`select ${name}.sweep(1000, '{0,0}')`)
    const { rows } = await pool.query<{ name: string; requests: number }>(
      `select k.name, cardinality(d.queue) as requests from ${name}.keys k join ${name}.data d on d.id = k.id order by name`,
    )
    return rows.map(row => [row.name, row.requests])
  }
  try {
    const bound = ['beside', 'bound'].map(key => [`lock/${key}`, 1])
    const alive = ['alive', 'also', 'shared'].map(key => [`lock/${key}`, 1])
    expect(await left()).toEqual([...alive, ...bound].sort())
    await client.query('rollback')
    await owner.query(`update ${name}.keys set due = 1 where due is not null`)
    expect(await left()).toEqual(alive)
    expect(await box.mutex('two').tryAcquire()).toBeDefined()
    expect(await box.mutex('alive').tryAcquire()).toBeUndefined()
  } finally {
    client.release()
    await pool.end()
  }
})

describe('the views', () => {
  test('show holders, waiters and values', async () => {
    const { name, url } = await grantedPlace()
    await using box = await open(url, { label: 'billing' })
    const [mutex, permits, shared] = [
      // PostgreSQL's text can't contain NUL, or half of a surrogate pair.
      await box.mutex('a', 'b').acquire({ label: 'a \0 and \ud83d' }),
      await box.semaphore('gpu', { max: 4 }).acquire({ permits: 2, lease: '60s' }),
      await box.readWriteLock('catalogue').read.acquire(),
    ]
    await using second = await open(url)
    const waiting = second.mutex('b').acquire()
    await box.store('prices').put('bread/rye', { euros: 3 })
    await box.store('prices').put('milk', 'text \0 with\nlines')
    const long = '\u{1f682}'.repeat(400)
    await box.store('prices').put(long, 1)
    await box.store('prices').put('gone', 1)
    await box.store('prices').delete('gone')
    // The list omits the key that is too long for an index.
    expect(keysOf(await listed(box.store('prices')))).toEqual(['bread/rye', 'milk'])

    const query = `select *, extract(epoch from expires - since)::int as lease from ${name}.locks`
    await expect
      .poll(async () => (await owner.query(`${query} order by key, phase`)).rows as unknown[], PATIENCE)
      .toMatchObject([
        {
          key: 'a',
          phase: 'held',
          claim: 'exclusive',
          label: 'a \ufffd and \ufffd',
          token: String(mutex.token),
        },
        { key: 'b', phase: 'held', claim: 'exclusive', session: box.session, token: String(mutex.token) },
        { key: 'b', phase: 'waiting', session: second.session, label: null, token: null },
        { key: 'catalogue', phase: 'held', claim: 'shared', label: 'billing', token: String(shared.token) },
        {
          key: 'gpu',
          phase: 'held',
          claim: '2 of 4',
          pid: process.pid,
          token: String(permits.token),
          lease: 60,
        },
      ])
    const { rows } = await owner.query<{ since: Date }>(`select since from ${name}.locks`)
    for (const { since } of rows) expect(Math.abs(Date.now() - since.getTime())).toBeLessThan(10_000)

    const values = await owner.query<Record<string, unknown>>(
      `select * from ${name}.values order by store, key`,
    )
    const { version } = (await box.store('prices').get('bread/rye'))!
    expect(values.rows).toMatchObject([
      { store: 'prices', key: 'bread/rye', version: String(version), value: '{"euros":3}' },
      { store: 'prices', key: 'milk', value: JSON.stringify('text \0 with\nlines') },
      { store: null, key: expect.stringMatching(/^#[0-9a-f]{64}$/) as string, value: '1' },
    ])

    await mutex.release()
    await (await waiting).release()
    await permits.release()
    await shared.release()
    expect((await owner.query(query)).rows).toEqual([])
  })

  test('can be read by a role that may read nothing else', async () => {
    const { name, url } = await grantedPlace()
    const person = await place()
    await using box = await open(url)
    await box.mutex('a').acquire()
    const grants = printedSchema(name).matchAll(/^-- (grant .*) to people;$/gm)
    for (const [, grant] of grants) await owner.query(`${grant!} to ${person.name}`)
    await using pool = server.pool({ user: person.name })
    expect((await pool.query(`select key from ${name}.locks`)).rows).toEqual([{ key: 'a' }])
    expect((await pool.query(`select key from ${name}.values`)).rows).toEqual([])
    await expect(pool.query(`select from ${name}.data`)).rejects.toThrow('permission denied')
  })
})
