import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { printedSchema } from '../../src/engines/postgres/printed-schema.js'
import { SCHEMA_REVISION, schemaHash } from '../../src/engines/postgres/schema.js'
import { diagnose, open } from '../../src/index.js'
import { postgresRecords, type Records } from '../../src/store/records/index.js'
import { failure } from '../support/failure.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres()
afterAll(() => server.kill())
await server.query(`
  create role boxer login; create role mallory login; create role other login; create role team;
  create role delegate; create role puppet admin mallory; create role dba login`)

type As = (user: string, text: string) => Promise<Record<string, unknown>[]>

/** Creates a database of the role dba, in which boxer and mallory may create schemas. */
async function database(): Promise<{ readonly url: string; readonly as: As }> {
  const name = `d${randomUUID().slice(0, 8)}`
  await server.query(`create database ${name} owner dba`)
  await server.query(`grant create on database ${name} to boxer, mallory, other`)
  const as: As = async (user, text) => {
    await using pool = server.pool({ user, database: name, max: 1 })
    const results = await pool.query(text)
    return ([results].flat().at(-1)?.rows ?? []) as Record<string, unknown>[]
  }
  return { url: `postgres://boxer@${server.address.host}:${server.address.port}/${name}`, as }
}

async function refusal(url: string): Promise<string> {
  const error = await open(url).then(
    box => box.close().then(() => undefined),
    (error: unknown) => error as { code: string; message: string },
  )
  expect(error).toMatchObject({ code: 'UNAVAILABLE' })
  return error!.message
}

/** Returns the statements that grant boxer the rights that the printed schema names. */
function grantsToBoxer(): string {
  const grants = [...printedSchema(undefined).matchAll(/^-- (grant .*) to app;$/gm)]
  return grants.map(([, grant]) => `${grant} to boxer`).join(';\n')
}

/** Code that records the user as whom it ran. */
const TELL = `begin
  if current_user <> 'mallory' then insert into loot.loot values (current_user); end if;`

/** Creates the table of these records. */
const LOOT = `
  create schema loot; grant all on schema loot to public;
  create table loot.loot (who text); grant all on loot.loot to public;`

const FORGED = `${LOOT}
  create schema signalbox; grant all on schema signalbox to public;
  create function signalbox.version() returns int language plpgsql as $f$ ${TELL} return 2; end $f$;
  comment on function signalbox.version() is 'revision ${SCHEMA_REVISION}, ${schemaHash()}';
  create function signalbox.clock() returns float8 language plpgsql as $f$ ${TELL} return 1; end $f$`

describe('a schema that another role has prepared', () => {
  test('is refused by a box, by the printed schema and by doctor, and nothing of it runs', async () => {
    const { url, as } = await database()
    await as('mallory', FORGED)
    expect(await refusal(url)).toMatch(
      /^the schema signalbox of .* is not safe for the user boxer: the schema signalbox belongs to mallory; .*drop the schema/,
    )
    const superuser = url.replace('boxer', 'tester')
    expect(await refusal(superuser)).toContain(
      'not safe for the user tester: the schema signalbox belongs to mallory',
    )
    await expect(as('tester', printedSchema(undefined))).rejects.toThrow(
      'the schema signalbox is not safe for the user tester: the schema signalbox belongs to mallory',
    )
    expect((await diagnose(url)).findings[0]).toMatchObject({
      id: 'untrusted-schema',
      how: expect.stringContaining('belongs to mallory') as string,
    })
    expect(await as('mallory', 'select who from loot.loot')).toEqual([])
  })

  test('is refused, too, if it appears between the first look and the creation', async () => {
    const { url, as } = await database()
    // The guard of the SQL runs after `create schema if not exists`, in the same transaction.
    await as('mallory', 'create schema signalbox; grant all on schema signalbox to public')
    await expect(as('boxer', printedSchema(undefined))).rejects.toThrow('belongs to mallory')
    expect(await as('tester', "select from pg_class where relnamespace = 'signalbox'::regnamespace")).toEqual(
      [],
    )
    await as('mallory', 'drop schema signalbox')
    await (await open(url)).close()
  })
})

/** Statements with which a statement on the table `data` can reach objects of mallory. */
const SPY = `create function public.spy() returns bool language sql immutable as 'select true'`
const SAME = `
  create function public.same(text, text) returns bool language sql immutable as 'select true';
  create operator public.=== (leftarg = text, rightarg = text, function = public.same)`
const CHECK = `alter table signalbox.data add constraint c check (name operator(public.===) 'a')`
const CHILD = `create table public.child () inherits (signalbox.data)`
const KEY = `alter table signalbox.data add unique (name);
  create table public.referring (name text references signalbox.data (name) on delete cascade)`
const trapOn = (on: string): string => `
  create function public.trap() returns trigger language plpgsql as 'begin return new; end';
  create trigger t before delete on ${on} execute function public.trap();
  alter function public.trap() owner to mallory`

describe('a box refuses its own schema', () => {
  test.each([
    [
      'the function signalbox.clock() belongs to mallory',
      'alter function signalbox.clock() owner to mallory',
    ],
    ['the table signalbox.data belongs to mallory', 'alter table signalbox.data owner to mallory'],
    ['the composite type signalbox.claim belongs to mallory', 'alter type signalbox.claim owner to mallory'],
    [
      'the function signalbox.decide(integer) belongs to mallory',
      'create function signalbox.decide(int) returns int language sql as $$ select 1 $$; ' +
        'alter function signalbox.decide(int) owner to mallory',
    ],
    [
      'mallory may create objects in the schema signalbox',
      'grant usage, create on schema signalbox to mallory',
    ],
    ['every role may create objects in the schema signalbox', 'grant create on schema signalbox to public'],
    ['mallory may add triggers to the table signalbox.data', 'grant all on signalbox.data to mallory'],
    [
      'the function public.trap() belongs to mallory, and the trigger t on signalbox.data uses it',
      `create function public.trap() returns trigger language plpgsql as $$ begin return new; end $$;
       create trigger t before update on signalbox.data execute function public.trap();
       alter function public.trap() owner to mallory`,
    ],
    ...[
      ['rule "_RETURN" on signalbox.spies', 'create view signalbox.spies as select public.spy()'],
      ['policy p on signalbox.data', 'create policy p on signalbox.data using (public.spy())'],
      [
        'default value for signalbox.data.spied',
        'alter table signalbox.data add spied bool default public.spy()',
      ],
      ['index signalbox.spied', 'create index spied on signalbox.data ((public.spy()))'],
    ].map(([what, add]) => [
      `the function public.spy() belongs to mallory, and the ${what} uses it`,
      `${SPY}; ${add}; alter function public.spy() owner to mallory`,
    ]),
    [
      `the function public.same(pg_catalog.text,pg_catalog.text) belongs to mallory, and the operator public.===(pg_catalog.text,pg_catalog.text) uses it`,
      `${SAME}; ${CHECK}; alter function public.same(text, text) owner to mallory`,
    ],
    [
      `the operator public.===(pg_catalog.text,pg_catalog.text) belongs to mallory, and the table constraint c on signalbox.data uses it`,
      `${SAME}; ${CHECK}; alter operator public.=== (text, text) owner to mallory`,
    ],
    [
      `the operator public.!==(pg_catalog.text,pg_catalog.text) belongs to mallory`,
      `${SAME}; create operator public.!== (leftarg = text, rightarg = text, function = public.same, negator = operator(public.===));
     ${CHECK}; alter operator public.!== (text, text) owner to mallory`,
    ],
    [
      `the type public.word belongs to mallory, and the table constraint c on signalbox.data uses it`,
      `create domain public.word as text; alter domain public.word owner to mallory;
     alter table signalbox.data add constraint c check (name::public.word is not null)`,
    ],
    [
      'the function public.spy() belongs to mallory, and the domain constraint d on public.word uses it',
      `${SPY}; create domain public.word as text constraint d check (public.spy()); create domain public.longer as public.word;
     alter table signalbox.data add constraint c check (name::public.longer is not null);
     alter function public.spy() owner to mallory`,
    ],
    [
      'the function public.told(public.told) belongs to mallory, and the cast (public.told AS pg_catalog.text) uses it',
      `create type public.told as (told text); create function public.told(public.told) returns text language sql as 'select null::text';
     create cast (public.told as text) with function public.told(public.told) as implicit;
     alter table signalbox.data add told public.told; alter function public.told(public.told) owner to mallory`,
    ],
    [
      'the function public.apart(double precision,double precision) belongs to mallory, and the type public.span uses it',
      `create function public.apart(float8, float8) returns float8 language sql immutable as 'select 1::float8';
     create type public.span as range (subtype = float8, subtype_diff = public.apart);
     alter table signalbox.data add span public.span; alter function public.apart(float8, float8) owner to mallory`,
    ],
    [
      `the function public.compared(pg_catalog.text,pg_catalog.text) belongs to mallory, and the function of access method function 1`,
      `create function public.compared(text, text) returns int language sql immutable as 'select 0';
     create operator class public.spied for type text using btree as operator 1 <, operator 3 =, function 1 public.compared(text, text);
     create index on signalbox.data (name public.spied); alter function public.compared(text, text) owner to mallory`,
    ],
    [
      `the table public.copies belongs to mallory, and the rule r on signalbox.data uses it`,
      `create table public.copies (n int); create rule r as on delete to signalbox.data do also insert into public.copies values (1);
     alter table public.copies owner to mallory`,
    ],
    [
      `the table public.child belongs to mallory, and it inherits from signalbox.data`,
      `${CHILD}; alter table public.child owner to mallory`,
    ],
    [
      'the function public.trap() belongs to mallory, and the trigger t on public.child uses it',
      `${CHILD}; ${trapOn('public.child')}`,
    ],
    [
      `the table public.referring belongs to mallory, and its foreign key referring_name_fkey refers to signalbox.data`,
      `${KEY}; alter table public.referring owner to mallory`,
    ],
    [
      'mallory may add triggers to the table public.referring',
      `${KEY}; grant trigger on public.referring to mallory`,
    ],
    [
      `the table constraint c on signalbox.data refers to a table of mallory`,
      `create table public.words (word text primary key);
     alter table signalbox.data add word text, add constraint c foreign key (word) references public.words;
     alter table public.words owner to mallory`,
    ],
    [
      `mallory may make foreign keys to the table signalbox.data`,
      `grant references on signalbox.data to mallory`,
    ],
    [
      `every role may make foreign keys to the table signalbox.data`,
      `grant references (name) on signalbox.data to public`,
    ],
    [
      'the operator signalbox.===(pg_catalog.text,pg_catalog.text) belongs to mallory',
      `create operator signalbox.=== (leftarg = text, rightarg = text, function = texteq);
       alter operator signalbox.=== (text, text) owner to mallory`,
    ],
    [
      'the type signalbox.word belongs to mallory',
      'create domain signalbox.word as text; alter domain signalbox.word owner to mallory',
    ],
  ])('if %s', async (reason, spoil) => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as('tester', `grant create on schema public to mallory; ${spoil}`)
    expect(await refusal(url)).toContain(`not safe for the user boxer: ${reason}`)
    expect((await diagnose(url)).findings).toContainEqual(
      expect.objectContaining({ id: 'untrusted-schema', how: expect.stringContaining(reason) as string }),
    )
  })
})

test('a schema that default privileges make unsafe is refused by the box that creates it, too', async () => {
  const { url, as } = await database()
  await as('boxer', 'alter default privileges grant all on tables to mallory')
  expect(await refusal(url)).toContain('mallory may add triggers to the table signalbox.')
})

describe('a schema is accepted', () => {
  test('beside extensions of an administrator, and what other roles make of it', async () => {
    const { url, as } = await database()
    await as(
      'tester',
      'create extension citext; create extension pg_stat_statements; create extension btree_gist',
    )
    await (await open(url)).close()
    await as(
      'tester',
      `alter table signalbox.data add note citext default 'a', add exclude using gist (id with =);
       create index on signalbox.data using gist (version gist_int8_ops);
       grant usage on schema signalbox to mallory; grant select on all tables in schema signalbox to mallory`,
    )
    await as(
      'mallory',
      `create schema mallory;
       create function mallory.spy() returns bool language sql as 'select true';
       create view mallory.locks as select l.*, mallory.spy() from signalbox.locks l, signalbox.data d;
       create table mallory.copies (one signalbox.claim, other signalbox.data);
       create policy p on mallory.copies using (exists (select from signalbox.data));
       create type mallory.told as (told text);
       create function mallory.told(signalbox.claim) returns mallory.told language sql as 'select null::mallory.told';
       create cast (signalbox.claim as mallory.told) with function mallory.told(signalbox.claim) as implicit;
       create function mallory.same(signalbox.claim, signalbox.claim) returns bool language sql as 'select true';
       create operator mallory.= (leftarg = signalbox.claim, rightarg = signalbox.claim, function = mallory.same);
       create function mallory.count() returns int begin atomic select 1 from signalbox.data; end`,
    )
    await using box = await open(url)
    await box.store('s').put('a', 1)
    expect((await diagnose(url)).findings.map(({ id }) => id)).not.toContain('untrusted-schema')
  })

  test('in a database of a managed service, whose administrator is no superuser', async () => {
    await server.query(`
      create role cloud_superuser createdb createrole; create role admin login in role cloud_superuser createdb createrole`)
    const { url, as } = await database()
    const name = new URL(url).pathname.slice(1)
    await server.query(`alter database ${name} owner to admin`)
    await as('admin', 'create extension citext; ' + printedSchema(undefined))
    await as('admin', "alter table signalbox.data add note citext default 'a'")
    await as('admin', grantsToBoxer())
    await using box = await open(url)
    await box.store('s').put('a', 1)
  })
})

describe('a schema is accepted from', () => {
  test.each(['tester', 'dba', 'boxer'])(
    'the role %s: a superuser, the owner of the database, or its user',
    async user => {
      const { url, as } = await database()
      await as(user, `${printedSchema(undefined)};\n${grantsToBoxer()}`)
      await as(
        'tester',
        'grant select on signalbox.locks to mallory; grant usage on schema signalbox to mallory',
      )
      await using box = await open(url)
      await box.mutex('a').run(() => undefined)
      expect((await diagnose(url)).findings.map(({ id }) => id)).not.toContain('untrusted-schema')
    },
  )

  test('a role that may act as its user', async () => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as('tester', 'alter schema signalbox owner to delegate; grant usage on schema signalbox to boxer')
    expect(await refusal(url)).toContain('the schema signalbox belongs to delegate')
    await as('tester', 'grant boxer to delegate')
    await (await open(url)).close()
    await as('tester', 'revoke boxer from delegate')
  })

  test('the role of the owner of the database', async () => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as('tester', 'alter schema signalbox owner to pg_database_owner')
    await as('dba', 'grant usage on schema signalbox to boxer')
    await (await open(url)).close()
  })

  test('a role that an administrator has granted to its user, and not from one that another role has', async () => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as('tester', 'grant usage, create on schema signalbox to puppet, other, team')
    expect(await refusal(url)).toContain('puppet may create')
    await as('mallory', 'grant puppet to boxer')
    await as('tester', 'grant team to boxer; grant other to team')
    const message = await refusal(url)
    expect(message).toContain('puppet may create')
    expect(message).not.toMatch(/(other|team) may create/)
    await as('tester', 'revoke create on schema signalbox from puppet; revoke puppet from boxer')
    await (await open(url)).close()
  })
})

describe('functions of another revision', () => {
  /** Replaces the functions of a schema with those of another package. */
  const revise = (comment: string): string => `
    comment on function signalbox.version() is ${comment};
    create or replace function signalbox.limiters() returns text language sql as $$ select 'other'::text $$`
  const isOther = async (as: As): Promise<boolean> =>
    (await as('tester', "select prosrc from pg_proc where proname = 'limiters'"))[0]!.prosrc ===
    " select 'other'::text "

  test.each([
    ['from before revisions were recorded', 'null'],
    ['of an earlier revision', `'revision 0, ${schemaHash()}'`],
    ['of the same revision with another text', `'revision ${SCHEMA_REVISION}, 0123456789abcdef'`],
  ])('%s are replaced once, while transactions use the tables', async (_, comment) => {
    const { url, as } = await database()
    await using box = await open(url)
    await box.store('s').put('a', 1)
    await as('tester', revise(comment))
    await using pool = server.pool({ database: new URL(url).pathname.slice(1), max: 1 })
    await pool.query('begin; update signalbox.data set value = value')
    await using other = await open(url)
    expect(await isOther(as)).toBe(false)
    await pool.query('commit')
    expect((await other.store('s').get('a'))?.value).toBe(1)
    const before = await as('tester', "select xmin from pg_proc where proname = 'limiters'")
    await (await open(url)).close()
    expect(await as('tester', "select xmin from pg_proc where proname = 'limiters'")).toEqual(before)
  })

  test('of a later revision are used as they are, unless one that the box calls is missing', async () => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as('tester', revise(`'revision ${SCHEMA_REVISION + 1}, 0123456789abcdef'`))
    {
      await using box = await open(url)
      await box.mutex('a').run(() => undefined)
    }
    expect(await isOther(as)).toBe(true)
    expect((await diagnose(url)).findings.map(({ id }) => id)).not.toContain('no-schema')
    await as('tester', 'drop function signalbox.fence(text[], text, text, bigint)')
    expect(await refusal(url)).toContain('lacks fence(_text, text, text, int8); use that version')
  })

  test('are named by the error for a role that may not replace them, and by doctor', async () => {
    const { url, as } = await database()
    await as('dba', `${printedSchema(undefined)};\n${grantsToBoxer()}`)
    await as('tester', revise("'revision 0, 0'"))
    expect(await refusal(url)).toMatch(
      /^the functions of the schema signalbox of .* are older .* apply what `signalbox schema postgres` prints as dba$/,
    )
    expect((await diagnose(url)).findings).toContainEqual(
      expect.objectContaining({ id: 'no-schema', how: expect.stringContaining('revision 0') as string }),
    )
    await as('dba', printedSchema(undefined))
    await (await open(url)).close()
  })
})

describe('a table of records', () => {
  /** Returns the records of a user in the database of a URL. */
  function recordsAt(url: string, table = 'signalbox_records'): Records<string> & AsyncDisposable {
    const { username: user, pathname } = new URL(url)
    const pool = server.pool({ user, database: pathname.slice(1), max: 2 })
    return Object.assign(postgresRecords(pool, { table }), { [Symbol.asyncDispose]: () => pool.end() })
  }

  /** Returns the message with which reads and writes of a table are rejected. */
  async function recordsRefusal(url: string, table?: string): Promise<string> {
    await using records = recordsAt(url, table)
    const calls = [records.get('a'), records.compareAndSet('a', undefined, '{}', 60_000)]
    const errors = (await Promise.allSettled(calls)).map(
      call => (call as PromiseRejectedResult).reason as { code: string; message: string },
    )
    for (const error of errors) expect(error).toMatchObject({ code: 'UNAVAILABLE' })
    expect(errors[1]!.message).toBe(errors[0]!.message)
    return errors[0]!.message
  }

  async function write(url: string): Promise<string | undefined> {
    await using records = recordsAt(url)
    return await records.compareAndSet(randomUUID(), undefined, '{}', 60_000)
  }

  test.each([
    ['found in public', 'public.signalbox_records', 'signalbox_records'],
    ['given with its schema', 'public.other_records', 'public.other_records'],
    ['found before that in public', 'boxer.signalbox_records', 'signalbox_records'],
  ])(
    'that another role has prepared and is %s is refused, and nothing of it runs',
    async (_, name, table) => {
      const { url, as } = await database()
      await as('tester', 'grant create on schema public to mallory, boxer')
      await write(url)
      if (name.startsWith('public.signalbox')) await as('tester', `drop table ${name}`)
      else if (name.startsWith('boxer'))
        await as('mallory', 'create schema boxer; grant all on schema boxer to public')
      await as(
        'mallory',
        `${LOOT} create table ${name} (key text primary key, record text not null,
         version bigint generated always as identity, keep_until timestamptz);
       grant all on ${name} to public;
       create function public.trap() returns trigger language plpgsql as $f$ ${TELL} return new; end $f$;
       create trigger trap before insert on ${name} for each statement execute function public.trap()`,
      )
      expect(await recordsRefusal(url, table)).toMatch(
        new RegExp(
          `^the table ${name} is not safe for the user boxer: the table ${name} belongs to mallory; .*drop the table`,
        ),
      )
      if (!name.startsWith('boxer'))
        expect(await recordsRefusal(url.replace('boxer', 'tester'), table)).toContain('for the user tester: ')
      expect(await as('mallory', 'select who from loot.loot')).toEqual([])
      // A store reports the same error, at its first call at the latest.
      await using records = recordsAt(url, table)
      await using box = await open('memory:')
      const put = box.store('s', { records }).put('a', 1)
      await expect(put).rejects.toMatchObject(failure('UNAVAILABLE', 'is not safe for the user boxer'))
      await as('mallory', `drop table ${name}`)
      await box.store('s', { records }).put('a', 1)
    },
  )

  test.each([
    [
      'the table public.signalbox_records belongs to mallory',
      'alter table signalbox_records owner to mallory',
    ],
    [
      'mallory may add triggers to the table public.signalbox_records',
      'grant all on signalbox_records to mallory',
    ],
    [
      'the type public.spied belongs to mallory, and the table column public.signalbox_records.keep_until uses it',
      `create domain public.spied as timestamptz; alter table signalbox_records alter keep_until type public.spied;
       alter domain public.spied owner to mallory`,
    ],
    [
      'the type public.spied belongs to mallory, and the type public.spied[] uses it',
      `create domain public.spied as text; alter domain public.spied owner to mallory;
       create domain public.more as public.spied[]; alter table signalbox_records add more public.more`,
    ],
    [
      'the function public.spy() belongs to mallory, and the domain constraint c on public.checked uses it',
      `${SPY}; create domain public.checked as text constraint c check (public.spy());
       alter table signalbox_records alter record type public.checked; alter function public.spy() owner to mallory`,
    ],
    [
      'the function public.spy() belongs to mallory, and the type public.filled uses it',
      `${SPY}; create domain public.filled as bool default public.spy();
       alter table signalbox_records add filled public.filled; alter function public.spy() owner to mallory`,
    ],
  ])('is refused if %s', async (reason, spoil) => {
    const { url, as } = await database()
    await as('tester', 'grant create on schema public to mallory, boxer')
    await write(url)
    await as('tester', spoil)
    expect(await recordsRefusal(url)).toContain(`is not safe for the user boxer: ${reason}`)
  })

  test('is used with nothing else that another role has put into its schema or before it', async () => {
    const { url, as } = await database()
    await as('tester', 'grant create on schema public to mallory, boxer')
    await as(
      'tester',
      `alter role boxer in database ${new URL(url).pathname.slice(1)} set search_path = public, pg_catalog`,
    )
    const tell = (head: string, result: string): string =>
      `create function public.${head} language plpgsql as $f$ ${TELL} return ${result}; end $f$`
    await as(
      'mallory',
      [
        LOOT,
        tell('told() returns pg_catalog.bool', 'true'),
        'create domain public.text as pg_catalog.text check (public.told())',
        'create domain public.float8 as pg_catalog.float8 check (public.told())',
        'create domain public.timestamptz as pg_catalog.timestamptz check (public.told())',
        tell('now() returns pg_catalog.timestamptz', 'pg_catalog.clock_timestamp()'),
        tell('current_schema() returns name', "'public'"),
        tell('pg_advisory_xact_lock(pg_catalog.int8) returns pg_catalog.int8', '1'),
        tell('hashtextextended(pg_catalog.text, pg_catalog.int4) returns pg_catalog.int8', '1'),
        ...['text', 'int8', 'timestamptz', 'oid'].flatMap(type =>
          ['=', '<>', '<'].flatMap((operator, index) => [
            tell(
              `compared_${type}_${index}(pg_catalog.${type}, pg_catalog.${type}) returns pg_catalog.bool`,
              'true',
            ),
            `create operator public.${operator} (leftarg = pg_catalog.${type}, rightarg = pg_catalog.${type},
               procedure = public.compared_${type}_${index})`,
          ]),
        ),
        tell('times(pg_catalog.float8, pg_catalog.interval) returns pg_catalog.interval', "'1 hour'"),
        'create operator public.* (leftarg = pg_catalog.float8, rightarg = pg_catalog.interval, procedure = public.times)',
        tell('plus(pg_catalog.timestamptz, pg_catalog.interval) returns pg_catalog.timestamptz', '$1'),
        'create operator public.+ (leftarg = pg_catalog.timestamptz, rightarg = pg_catalog.interval, procedure = public.plus)',
      ].join(';\n'),
    )
    await using records = recordsAt(url)
    const version = await records.compareAndSet('a', undefined, '{}', 1)
    expect(await records.compareAndSet('a', version, '{"more":1}', 60_000)).toBeDefined()
    expect(await records.get('a')).toMatchObject({ text: '{"more":1}' })
    expect(await records.get('b')).toBeUndefined()
    expect(await as('mallory', 'select who from loot.loot')).toEqual([])
  })

  test.each(['tester', 'dba'])('is accepted as %s makes it from the page', async user => {
    const { url, as } = await database()
    const [, sql] = /```sql\n(create table[^`]*)```/.exec(readFileSync('docs/records.md', 'utf8'))!
    await as('tester', 'grant create on schema public to dba; revoke create on schema public from public')
    await as(user, sql!.replace('to app', 'to boxer'))
    expect(await write(url)).toBeDefined()
  })

  test('of a role for migrations, and one with all rights on it, are accepted as the error says', async () => {
    const { url, as } = await database()
    await as(
      'tester',
      'create role migrations login; create role reports; grant create on schema public to migrations',
    )
    const [, sql] = /```sql\n(create table[^`]*)```/.exec(readFileSync('docs/records.md', 'utf8'))!
    await as('migrations', `${sql!.replace('to app', 'to boxer')} grant all on signalbox_records to reports`)
    const trust =
      'If it is a role of yours, such as the one of your migrations, let it act as this user: grant USER to ROLE.'
    const refused = await recordsRefusal(url)
    expect(refused).toContain('belongs to migrations')
    expect(refused).toContain('reports may add triggers')
    expect(refused).toContain(trust)
    await as('tester', 'grant boxer to migrations')
    expect(await recordsRefusal(url)).not.toContain('belongs to migrations')
    await as('tester', 'grant boxer to reports')
    expect(await write(url)).toBeDefined()
    const [may] = await as(
      'boxer',
      "select pg_has_role('migrations', 'member') or pg_has_role('reports', 'member') as may",
    )
    expect(may).toEqual({ may: false })
  })
})

test('a box does not wait for the server to compile its queries on the catalogs', async () => {
  const { url, as } = await database()
  await (await open(url)).close()
  // With thousands of functions in the database, estimates exceed these costs by default.
  const costs = ['jit_above_cost', 'jit_inline_above_cost', 'jit_optimize_above_cost']
  const name = new URL(url).pathname.slice(1)
  await as('tester', costs.map(cost => `alter database ${name} set ${cost} = 0`).join(';'))
  const times: number[] = []
  for (let round = 0; round < 3; round++) {
    const begun = performance.now()
    await (await open(url)).close()
    times.push(performance.now() - begun)
  }
  // Compiling takes more than a second each time. Without it, most opens take less than a tenth of a second.
  expect(Math.min(...times)).toBeLessThan(700)
})
