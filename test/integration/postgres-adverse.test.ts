import { randomUUID } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { pause, queued, soFar, timed, until } from '../../packages/conformance/src/time.js'
import { open, type Box } from '../../src/index.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startPgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

let server: PostgresServer
let pool: pg.Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = server.pool({ max: 20 })
})

afterAll(async () => {
  await pool.end()
  await server.kill()
})

/** Returns a new schema and its URL. */
function place(): { readonly url: string; readonly schema: string } {
  const schema = `s${randomUUID().slice(0, 8)}`
  return { url: `${server.url}?signalbox_schema=${schema}`, schema }
}

/** Makes each kind of call. */
async function everything(box: Box): Promise<void> {
  await box.mutex('key').run(() => undefined)
  await box.mutex('key', 'more').run(() => undefined)
  await box.semaphore('permits', { max: 2 }).run(() => undefined)
  const shared = await box.readWriteLock('shared').write.acquire()
  await shared.downgrade()
  await shared.release()
  const held = await box.mutex('hot').acquire()
  const waits = Array.from({ length: 3 }, () => box.mutex('hot').run(() => undefined))
  await held.release()
  await Promise.all(waits)
  const store = box.store('s')
  await store.put('key', { value: 1 })
  await store.transaction(['key', 'other'], tx => tx.put('other', tx.get('key')), { id: 'once' })
  await store.delete('key')
  await box.limiter('api', { limit: 5, per: '1s' }).acquire()
  for await (const _ of box.inspect()) break
}

describe.concurrent('a transaction of the caller’s', () => {
  test('that writes a value for the 200th time gives its row a new number', async () => {
    const { url, schema } = place()
    await using box = await open(url)
    const store = box.store('s')
    const client = await pool.connect()
    const write = async (value: number): Promise<void> => {
      await client.query('begin')
      await store.transaction(['a'], tx => tx.put('a', value), { in: client })
      await client.query('commit')
    }
    await write(1)
    // Simulates years of such transactions, without other writes between them.
    await pool.query(`update ${schema}.data set changes = 2147483647 where name = 'value/s/a'`)
    await write(2)
    client.release()
    expect((await store.get('a'))?.value).toBe(2)
    const { rows } = await pool.query(`select changes from ${schema}.data where name = 'value/s/a'`)
    expect(rows).toEqual([{ changes: 1 }])
  })

  test('that locks the row of a key makes a caller wait as long as its option says', async () => {
    const { url } = place()
    await using box = await open(url)
    await using other = await open(url)
    const client = await pool.connect()
    await client.query('begin')
    await box.store('s').transaction(['a'], tx => tx.put('a', 1), { in: client })
    const waits = other
      .store('s')
      .transaction(['a'], tx => tx.put('a', tx.get<number>('a')! + 1), { wait: '30s' })
    await pause(3500)
    expect(await soFar(waits)).toBe('pending')
    await client.query('commit')
    client.release()
    await waits
    expect((await box.store('s').get('a'))?.value).toBe(2)
  })

  test('that locks many values delays only writers of these', async () => {
    const { url, schema } = place()
    await using box = await open(url)
    const store = box.store('s')
    const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`)
    await Promise.all(keys.map(key => store.put(key, 0)))
    const held = await box.mutex('held').acquire({ lease: 1500 })
    const client = await pool.connect()
    await client.query('begin')
    await client.query(`select from ${schema}.data where name like 'value/%' for update`)
    const puts = keys.map(key => store.put(key, 1))
    for (let round = 0; round < 10; round++) {
      // Far less than 100 ms for each of the locked rows.
      expect(await timed(() => box.mutex(`other-${round}`).run(() => undefined))).toBeLessThan(1500)
      await store.put(`more-${round}`, 1)
      held.assertHeld()
    }
    await client.query('commit')
    client.release()
    await Promise.all(puts)
    await held.release()
    expect((await store.get('key-49'))?.value).toBe(1)
  })
})

/** Creates types, functions and operators that match a call better than the built-in ones. */
function traps(schema: string): string {
  const trap = `returns %s language plpgsql as $$ begin raise exception 'trapped'; end $$`
  const functions: [head: string, result: string][] = [
    [`cardinality(${schema}.request[])`, 'int'],
    ['cardinality(text[])', 'int'],
    ['cardinality(int[])', 'int'],
    ['cardinality(bigint[])', 'int'],
    ['array_position(text[], text)', 'int'],
    ['array_remove(text[], text)', 'text[]'],
    ['array_fill(boolean, int[])', 'boolean[]'],
    [`unnest(${schema}.request[])`, `setof ${schema}.request`],
    [`unnest(${schema}.claim[])`, `setof ${schema}.claim`],
    ['unnest(text[])', 'setof text'],
    ['to_json(text)', 'json'],
    ['array_to_json(text[])', 'json'],
    ['array_to_json(float8[])', 'json'],
    ['array_to_string(float8[], text)', 'text'],
    ['array_append(text[], text)', 'text[]'],
    ['format(text, text)', 'text'],
    ['format(text, bigint)', 'text'],
    ['json_build_array(float8, json, json)', 'json'],
    ['clock_timestamp(text)', 'timestamptz'],
    ['floor(real)', 'float8'],
  ]
  const operators: [left: string, name: string, right: string, result: string][] = [
    ['text[]', '||', 'text', 'text[]'],
    ['int[]', '||', 'int', 'int[]'],
    ['bigint[]', '||', 'bigint', 'bigint[]'],
    ['text', '||', 'bigint', 'text'],
    [`${schema}.request[]`, '||', `${schema}.request`, `${schema}.request[]`],
    ['text[]', '<>', 'text[]', 'boolean'],
    ['int[]', '<>', 'int[]', 'boolean'],
    ['text', '||', 'name', 'text'],
  ]
  const types = ['bool', 'float8', 'int4', 'int8', 'text', 'uuid']
  return [
    `create function public.trap_type() ${trap.replace('%s', 'bool')}`,
    ...types.map(type => `create domain public.${type} as pg_catalog.${type} check (public.trap_type())`),
    ...functions.map(([head, result]) => `create function public.${head} ${trap.replace('%s', result)}`),
    ...operators.map(([left, name, right, result], index) => {
      const called = `public.trap_${index}`
      return `create function ${called}(${left}, ${right}) ${trap.replace('%s', result)};
        create operator public.${name} (leftarg = ${left}, rightarg = ${right}, function = ${called})`
    }),
  ].join(';')
}

test('a role that may create objects in public cannot trap functions of the schema', async () => {
  const { url, schema } = place()
  await using box = await open(url)
  await pool.query(traps(schema))
  try {
    await pool.query(`alter database postgres set search_path = public, pg_catalog`)
    await using other = await open(url)
    await everything(other)
    const client = await pool.connect()
    await client.query('begin; set local search_path = public, pg_catalog')
    await other.store('s').transaction(['k'], tx => tx.put('k', 1), { in: client })
    await client.query('commit')
    client.release()
    expect((await box.store('s').get('k'))?.value).toBe(1)
  } finally {
    await pool.query(
      `alter database postgres reset search_path; drop schema public cascade; create schema public`,
    )
  }
  const { rows } = await pool.query(
    `select proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where nspname = $1 and prolang = (select oid from pg_language where lanname = 'plpgsql')
        and not coalesce(proconfig::text like '%search_path=pg_catalog, pg_temp%', false)`,
    [schema],
  )
  expect(rows).toEqual([])
})

test('thousands of keys are held at the same time, each with a row of its own', async () => {
  const { url, schema } = place()
  await using box = await open(url)
  const names = Array.from({ length: 3000 }, (_, index) => `key-${index}`)
  const grants = await Promise.all(names.map(name => box.mutex(name).acquire({ lease: '60s' })))
  await Promise.all(names.map(name => box.store('s').put(name, 1)))
  const { rows } = await pool.query<{ count: string; least: string }>(
    `select count(distinct id) as count, min(id) as least from ${schema}.data`,
  )
  expect(rows[0]!.count).toBe(String(2 * names.length))
  // Numbers increase with the clock, so none is used again after a crash.
  expect(Number(rows[0]!.least)).toBeGreaterThan((Date.now() - 60_000) * 1024)
  for (const grant of grants) await grant.release()
})

test('boxes that add rows delete expired ones, no matter how short they live', async () => {
  const clock = new FakeClock()
  await using clocked = await startPostgres({ clock })
  const count = async (): Promise<number[]> => {
    const [rows] = await clocked.query<{ keys: string; data: string; ids: string }>(
      `select (select count(*) from signalbox.keys) as keys, (select count(*) from signalbox.data) as data,
        (select count(*) from signalbox.recorded) as ids`,
    )
    return [Number(rows!.keys), Number(rows!.data), Number(rows!.ids)]
  }
  for (let minute = 0; minute < 8; minute++) {
    clock.set(minute * 61_000)
    await using box = await open(clocked.url)
    const store = box.store('s')
    for (let index = 0; index < 40; index++) {
      await box.mutex(`key-${minute}-${index}`).run(() => undefined)
      const add = { id: `id-${minute}-${index}`, retention: '30s' } as const
      await store.transaction(['counter'], tx => tx.put('counter', index), add)
      await box.limiter(`limiter-${minute}-${index}`, { limit: 1, per: '1s' }).acquire()
    }
  }
  // The rows of the last minute, and some rows of the minute before.
  for (const rows of await count()) expect(rows).toBeLessThan(3 * 80)
})

test('a box that adds one row at a time deletes ids and keys that expire at the same moment', async () => {
  const clock = new FakeClock()
  await using clocked = await startPostgres({ clock })
  await using box = await open(clocked.url)
  const add = (id: string): Promise<unknown> =>
    box.store('s').transaction(['counter'], tx => tx.put('counter', id), { id, retention: '30s' })
  const names = Array.from({ length: 40 }, (_, index) => `${index}`)
  await Promise.all(names.map(add))
  await Promise.all(names.map(name => box.limiter(name, { limit: 1, per: '1s' }).acquire()))
  clock.set(61_000)
  for (let index = 0; index < 60; index++) {
    await add(`later ${index}`)
    await box.mutex(`later ${index}`).run(() => undefined)
  }
  const [left] = await clocked.query<{ ids: string; keys: string }>(
    `select (select count(*) from signalbox.recorded where until < clock_timestamp()) as ids,
      (select count(*) from signalbox.keys where name like 'limit/%') as keys`,
  )
  expect(left).toEqual({ ids: '0', keys: '0' })
})

test('a box whose connection for messages is dead without an error is served, and reconnects', async () => {
  const { url, schema } = place()
  await using box = await open(url)
  const receiving = server.pool({ max: 8 })
  let isDead = false
  let listeners = 0
  receiving.on('connect', client => {
    const emit = client.emit.bind(client) as EventEmitter['emit']
    let listens = false
    let isOld = false
    client.emit = ((event: string, ...rest: unknown[]) => {
      const isLost = event === 'notification' && (isOld || (isDead && listens))
      return isLost ? false : emit(event, ...rest)
    }) as typeof client.emit
    const query = client.query.bind(client) as (statement: unknown) => unknown
    client.query = ((statement: unknown) => {
      isOld ||= isDead && listens
      if (typeof statement === 'string' && statement.startsWith('listen')) {
        listeners++
        listens = true
        isDead = false
      }
      return isOld ? new Promise(() => undefined) : query(statement)
    }) as typeof client.query
  })
  {
    await using silent = await open({ postgres: receiving, schema })
    const first = await box.mutex('key').acquire({ lease: '60s' })
    const asked = silent.mutex('key').acquire({ lease: '60s' })
    await queued(box, 'key', 1)
    expect(listeners).toBe(1)
    await pause(500)
    isDead = true
    await until('it reconnects', () => listeners === 2, 10_000)
    expect(await timed(() => first.release().then(() => asked))).toBeLessThan(1500)
    await (await asked).release()
  }
  await receiving.end()
})

test('waiters behind a pooler write almost nothing', async () => {
  await using pooler = await startPgBouncer(server)
  const { schema } = place()
  const url = `${pooler.url}?signalbox_schema=${schema}`
  await using one = await open(url)
  await using other = await open(url)
  const names = Array.from({ length: 20 }, (_, index) => `key-${index}`)
  const held = await Promise.all(names.map(name => one.mutex(name).acquire({ lease: '60s' })))
  const asked = names.map(name => other.mutex(name).acquire({ lease: '60s' }))
  await Promise.all(names.map(name => queued(one, name, 1)))
  const changes = async (): Promise<number> => {
    const { rows } = await pool.query<{ changes: string }>(
      `select sum(changes) as changes from ${schema}.data`,
    )
    return Number(rows[0]!.changes)
  }
  const before = await changes()
  await pause(3000)
  // Each sends a heartbeat every second or two.
  expect((await changes()) - before).toBeLessThan(4 * names.length)
  for (const grant of held) await grant.release()
  for (const grant of asked) await (await grant).release()
})

describe.concurrent('damaged rows', () => {
  test('make only operations on them fail, and can be overwritten', async () => {
    const { url, schema } = place()
    await using box = await open(url)
    const store = box.store('s')
    await store.put('bad', 1)
    await store.put('good', 1)
    await box.mutex('lost').run(() => undefined)
    await pool.query(`update ${schema}.data set value = '{' where name = 'value/s/bad'`)
    await pool.query(`
      update ${schema}.data set queue = array[row('a.1', 'lock/nothing', ${'null, '.repeat(9)}null)::${schema}.request]
        where name = 'lock/lost'`)
    await expect(box.mutex('lost').tryAcquire()).rejects.toMatchObject({
      message: expect.stringContaining('lock/lost') as string,
    })
    const [bad, ...others] = await Promise.allSettled([
      store.get('bad'),
      store.get('good'),
      box.mutex('lost').tryAcquire(),
      box.mutex('other').run(() => undefined),
      store.put('good', 2),
    ])
    expect(others.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(bad).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringContaining('bad') as string },
    })
    const shown: string[] = []
    await box.mutex('shown').run(async () => {
      for await (const { key } of box.inspect()) shown.push(key)
    })
    expect(shown).toEqual(['shown'])
    await store.put('bad', 3)
    expect((await store.get('bad'))?.value).toBe(3)
  })

  test.each([
    ['array_nulls', 'off'],
    ['extra_float_digits', '-15'],
    ['default_transaction_isolation', 'serializable'],
    ['DateStyle', 'German'],
    ['TimeZone', 'Pacific/Kiritimati'],
    ['plpgsql.variable_conflict', 'use_column'],
    ['enable_indexscan', 'off'],
  ])('is nothing for a role with %s = %s', async (name, value) => {
    const role = `r${randomUUID().slice(0, 8)}`
    await pool.query(`create role ${role} login superuser; alter role ${role} set ${name} = '${value}'`)
    await using box = await open(place().url.replace('tester', role))
    await everything(box)
    expect((await box.store('s').get('other'))?.value).toEqual({ value: 1 })
    await box.mutex('exact').run(
      async () => {
        for await (const { holders } of box.inspect('exact'))
          expect(holders[0]!.expiresIn).toBeGreaterThan(10_000)
      },
      { lease: 12_345 },
    )
  })

  test.each(['0', '-15'])(
    'keeps no permits from a distant box: extra_float_digits = %s',
    { timeout: 30_000 },
    async digits => {
      const role = `r${randomUUID().slice(0, 8)}`
      await pool.query(
        `create role ${role} login superuser; alter role ${role} set extra_float_digits = ${digits}`,
      )
      await using network = await Proxy.start(server.address.port)
      const url = place().url.replace('tester', role)
      await using near = await open(url)
      await using far = await open(url.replace(`:${server.address.port}`, `:${network.port}`))
      const limit = { limit: 10, per: 100 } as const
      const controller = new AbortController()
      const busy = Array.from({ length: 5 }, async () => {
        while (!controller.signal.aborted) await near.limiter('api', limit).acquire()
      })
      network.delay = 150
      try {
        for (let count = 0; count < 3; count++) await far.limiter('api', limit).acquire(1, { wait: '5s' })
      } finally {
        network.delay = 0
        controller.abort()
        await Promise.all(busy)
      }
    },
  )
})
