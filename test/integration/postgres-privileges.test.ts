import type pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres()
afterAll(() => server.kill())

const ARRAYS = ['bool[]', 'int4[]', 'int8[]', 'float8[]', 'text[]', 'uuid[]', 'name[]', 'json[]', 'jsonb[]']
const SCALARS = 'bool int4 int8 float8 numeric text varchar name uuid json jsonb'.split(' ')
const MORE = ['timestamptz', 'interval', 'oid', 'regclass', 'bytea', 'record']
const TYPES = [...SCALARS, ...MORE, ...ARRAYS]
/** Types that are tried in all pairs. */
const PAIRED = 'bool int4 int8 float8 numeric text uuid json int8[] text[] uuid[]'.split(' ')

/**
 * Creates traps in a schema: for each function and operator of PostgreSQL, functions and operators to which a call
 * without a schema could resolve. Such a call has argument types that match no function of pg_catalog exactly. `called`
 * contains the names that are tried with all pairs of types. Polymorphic functions are tried for every name.
 */
const TRAPS = `
create function pg_temp.trap(place text, name text, args text[], result text, number int) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $trap$
begin
  execute format(
    $f$create function %I.%I(%s) returns %s language plpgsql as $body$
      begin perform pg_catalog.setval('pit.sprung', %s); return null; end $body$$f$,
    place, name, array_to_string(args, ', '), result, number
  );
  insert into pit.traps values (number, format('%I.%I(%s)', place, name, array_to_string(args, ', ')));
exception when others then
  -- There is such a function already, or none can have this form.
end $trap$;

create function pg_temp.operator_trap(place text, name text, one text, other text, number int) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $trap$
begin
  perform pg_temp.trap(place, 'operator_' || number, array[one, other],
    case when name in ('||', '+', '-', '*', '/', '%', '&', '#') then one
         when name in ('->', '#>') then 'json' when name in ('->>', '#>>') then 'text' else 'bool' end, number);
  execute format('create operator %I.%s (leftarg = %s, rightarg = %s, procedure = %I.%I)',
    place, name, one, other, place, 'operator_' || number);
exception when others then
end $trap$;

create function pg_temp.lay(place text, types text[], paired text[], called text[], operators text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $lay$
declare
  f record;
  one text;
  other text;
  number int := (select coalesce(max(t.number), 0) from pit.traps t);
begin
  -- Each polymorphic function with each type in the place of "any".
  for f in
    select p.proname, p.pronargs,
        array(
          select t.typname::text from unnest(p.proargtypes) with ordinality a(type, place)
            join pg_type t on t.oid = a.type order by a.place
        ) as args,
        r.typname::text as result
      from pg_proc p join pg_type r on r.oid = p.prorettype
      where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind <> 'p' and p.provariadic = 0 and p.pronargs < 4
        and exists (select from unnest(p.proargtypes) a join pg_type t on t.oid = a where t.typname like 'any%')
        and not exists (select from unnest(p.proargtypes) a join pg_type t on t.oid = a where t.typname = 'internal')
  loop
    foreach one in array types loop
      number := number + 1;
      perform pg_temp.trap(place, f.proname,
        array(
          select case
              when a like '%array' then case when one like '%[]' then one else one || '[]' end
              when a like 'any%' then one else a end
            from unnest(f.args) with ordinality u(a, i) order by i
        ),
        case when f.result like '%array' then case when one like '%[]' then one else one || '[]' end
          when f.result in ('anyelement', 'anynonarray', 'anycompatible', 'anyenum') then rtrim(one, '[]')
          when f.result like 'any%' or f.result in ('internal', 'trigger', 'void') then 'text' else f.result end,
        number);
    end loop;
  end loop;
  -- Each function that is called, with one argument and two of any type.
  for f in
    select p.proname, coalesce(min(t.typname) filter (where t.typname !~ '^(any|internal|void|trigger|record)'), 'text') as result
      from pg_proc p join pg_type t on t.oid = p.prorettype
      where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any(called) group by 1
  loop
    foreach one in array types loop
      number := number + 1;
      perform pg_temp.trap(place, f.proname, array[one], f.result, number);
      foreach other in array case when one = any(paired) then paired else array['text'] end loop
        number := number + 1;
        perform pg_temp.trap(place, f.proname, array[one, other], f.result, number);
      end loop;
    end loop;
  end loop;
  -- Those that take any number of arguments: names and values by turns, the values of one type.
  for f in
    select distinct p.proname, r.typname as result from pg_proc p join pg_type r on r.oid = p.prorettype
      where p.pronamespace = 'pg_catalog'::regnamespace and p.provariadic = '"any"'::regtype
  loop
    foreach one in array types loop
      for count in 1 .. 5 loop
        number := number + 2;
        perform pg_temp.trap(place, f.proname, array(
          select v from generate_series(1, count) n, unnest(array['text', one]) v
        ), f.result, number);
        perform pg_temp.trap(place, f.proname, array(select one from generate_series(1, count)), f.result, number + 1);
      end loop;
      number := number + 2;
    end loop;
  end loop;
  foreach one in array paired loop
    foreach other in array paired loop
      for f in select unnest(operators) as name loop
        number := number + 1;
        perform pg_temp.operator_trap(place, f.name, one, other, number);
      end loop;
    end loop;
  end loop;
end $lay$;
`

const OPERATORS = '= <> < <= > >= + - * / % || <@ @> && -> ->> #>>'.split(' ')

/** Functions that the schema may call, even if it does not call them today. */
const CALLED = `
  abs array_append array_length array_position array_remove array_to_string cardinality ceil coalesce
  concat convert_from convert_to date_part decode encode extract floor format generate_series greatest
  has_function_privilege has_schema_privilege has_sequence_privilege has_table_privilege hashtext
  hashtextextended json_array_elements json_array_length json_typeof jsonb_array_elements
  jsonb_array_length left length lower md5 mod nextval now octet_length pg_advisory_xact_lock pg_notify
  position power quote_ident regexp_replace regexp_split_to_array replace right round set_config setval
  sha256 split_part sqrt starts_with string_agg strpos substr substring sum to_timestamp trunc unnest
  upper`
  .trim()
  .split(/\s+/)

/** Lets the role `intruder` create its traps in a schema, and returns their number. */
async function layTraps(database: string, schema: string, engine: string | undefined): Promise<number> {
  await using client = await server.client({ database })
  const called = new Set(CALLED)
  if (engine !== undefined) {
    const { rows } = await client.query<{ text: string }>(
      'select prosrc as text from pg_proc where pronamespace = $1::regnamespace',
      [engine],
    )
    for (const { text } of rows) for (const [, name] of text.matchAll(/([a-z_]+)\(/g)) called.add(name!)
  }
  await client.query(`
    create schema if not exists pit;
    grant usage, create on schema pit to public;
    create sequence if not exists pit.sprung;
    grant all on sequence pit.sprung to public;
    create table if not exists pit.traps (number int, signature text);
    grant all on pit.traps to public`)
  await client.query('begin')
  await client.query('set local role intruder')
  await client.query(TRAPS)
  const traps = [schema, TYPES, PAIRED, [...called], OPERATORS]
  await client.query('select pg_temp.lay($1, $2, $3, $4, $5)', traps)
  await client.query('commit')
  const { rows } = await client.query<{ count: string }>('select count(*) from pit.traps')
  return Number(rows[0]!.count)
}

/** Returns the trap that ran last; undefined if none has run. */
async function sprung(database: string): Promise<string | undefined> {
  await using client = await server.client({ database })
  const { rows } = await client.query<{ signature: string }>(
    'select t.signature from pit.sprung s join pit.traps t on s.is_called and t.number = s.last_value::int',
  )
  return rows[0]?.signature
}

/** Uses every feature of a box that sends requests to the server. */
async function used(box: Box, client: pg.Client): Promise<void> {
  const store = box.store('s')
  await box.mutex('a', 'b').run(() => undefined)
  await box.readWriteLock('r').read.run(() => undefined)
  await box.semaphore('p', { max: 2 }).run(() => undefined)
  await store.put('a', { number: 1 })
  await store.get('a')
  await store.transaction(['a', 'b'], tx => tx.put('b', 1), { id: 'one' })
  await store.transaction(['a', 'b'], tx => tx.put('b', 1), { id: 'one' })
  await box.limiter('l', { limit: 5, per: '1s' }).acquire()
  for await (const _ of box.inspect()) continue
  const held = await box.mutex('a').acquire({ lease: 900 })
  const waiting = box.mutex('a').acquire({ wait: '10s' })
  await new Promise(resolve => setTimeout(resolve, 500))
  await client.query('begin')
  await held.fence(client)
  await client.query('commit')
  await held.release()
  await (await waiting).release()
  await client.query('begin')
  await store.transaction(['c'], tx => tx.put('c', 1), { in: client, id: 'two' })
  await client.query('commit')
  await client.query('begin')
  await store.transaction(['c'], tx => tx.delete('c'), { in: client })
  await client.query('commit')
}

describe('a role that may create objects in schemas of a box’s search path cannot run code as that box', () => {
  test.each([
    ['before', 'public'],
    ['after', 'public'],
    ['before', 'early'],
    ['after', 'early'],
  ])(
    'when it set its traps %s the box opened, in the schema %s',
    { timeout: 120_000 },
    async (when, schema) => {
      const database = `traps_${when}_${schema}`
      await server.query(`create database ${database}`)
      const url = server.url.replace(/[^/]+$/, database)
      await using root = await server.client({ database })
      await root.query(`
      do $$ begin create role intruder login; exception when duplicate_object then end $$;
      create schema early; grant create, usage on schema early, public to intruder;
      grant temporary on database ${database} to intruder`)
      await root.query(`alter role tester in database ${database} set search_path = early, public`)
      if (when === 'after') await (await open(url)).close()
      const engine = when === 'after' ? 'signalbox' : undefined
      expect(await layTraps(database, schema, engine)).toBeGreaterThan(2000)
      await using client = await server.client({ database })
      const failure = await open(url).then(
        async box => {
          const failed = await used(box, client).catch((error: unknown) => error)
          await box.close()
          return failed
        },
        (error: unknown) => error,
      )
      expect(await sprung(database)).toBeUndefined()
      if (failure !== undefined) throw failure
    },
  )

  test('when it made types, and functions and operators for types of the schema, that come before the built-in ones', async () => {
    const database = 'traps_for_types'
    await server.query(`create database ${database}`)
    const url = server.url.replace(/[^/]+$/, database)
    await using client = await server.client({ database })
    await (await open(url)).close()
    const trap = `returns %s language plpgsql as $$ begin raise exception 'trapped'; end $$`
    const requests = 'signalbox.request[]'
    await client.query(
      [
        `create function public.trap_type() ${trap.replace('%s', 'bool')}`,
        ...['bool', 'float8', 'int4', 'int8', 'text', 'uuid'].map(
          type => `create domain public.${type} as pg_catalog.${type} check (public.trap_type())`,
        ),
        `create function public.cardinality(${requests}) ${trap.replace('%s', 'int')}`,
        `create function public.unnest(${requests}) ${trap.replace('%s', 'setof signalbox.request')}`,
        `create function public.unnest(signalbox.claim[]) ${trap.replace('%s', 'setof signalbox.claim')}`,
        `create function public.append(${requests}, signalbox.request) ${trap.replace('%s', requests)}`,
        `create operator public.|| (leftarg = ${requests}, rightarg = signalbox.request, function = public.append)`,
        `alter database ${database} set search_path = public, pg_catalog`,
        'set search_path = public, pg_catalog',
      ].join(';'),
    )
    await using box = await open(url)
    await used(box, client)
    expect((await box.store('s').get('b'))?.value).toBe(1)
  })

  test('temporary objects of a caller do not affect its fence', async () => {
    await using box = await open(server.url)
    await using client = await server.client()
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'signalbox'::regnamespace and relkind = 'r'`,
    )
    const types = ['bool', 'float8', 'int4', 'int8', 'text', 'uuid'].map(name => ({ name }))
    for (const { name } of [...rows, ...types])
      await client.query(`create temporary table ${name} (nothing int)`)
    const grant = await box.mutex('key').acquire()
    await client.query('begin')
    await grant.fence(client)
    await box.store('s').transaction(['key'], tx => tx.put('key', 1), { in: client })
    await client.query('commit')
    await grant.release()
    expect((await box.store('s').get('key'))?.value).toBe(1)
  })

  test('each function of the schema sets its search path, or qualifies all names', async () => {
    await (await open(server.url)).close()
    const free = await server.query<{ name: string }>(`
      select p.oid::regprocedure::text as name from pg_proc p
        where p.pronamespace = 'signalbox'::regnamespace
          and not exists (select from unnest(p.proconfig) c where c like 'search_path=%')`)
    // PostgreSQL inlines these functions, which a setting would prevent. They qualify every name.
    expect(free.map(({ name }) => name).sort()).toEqual([
      'signalbox.blocks(signalbox.request,double precision)',
      'signalbox.clock()',
      'signalbox.entries(text,signalbox.request[])',
      'signalbox.entry_of(text,signalbox.request[],text)',
      'signalbox.is_full(signalbox.request[])',
      'signalbox.is_unbound(xid,xid)',
      'signalbox.keeps_back(text,signalbox.request[],double precision)',
      'signalbox.new_id()',
      'signalbox.numbers(text[])',
      'signalbox.row_size()',
      'signalbox.tail_after(signalbox.request[])',
      'signalbox.version()',
    ])
  })
})
