import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { printedSchema } from '../../src/engines/postgres/printed-schema.js'
import { SCHEMA_REVISION, schemaHash } from '../../src/engines/postgres/schema.js'
import { diagnose, open } from '../../src/index.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
  await server.query(`
    create role boxer login; create role mallory login; create role other login; create role team; create role delegate; create role puppet admin mallory; create role dba login`)
})

afterAll(() => server.kill())

type As = (user: string, text: string) => Promise<Record<string, unknown>[]>

/** A new database of the role dba, in which boxer and mallory may create schemas. */
async function database(): Promise<{ readonly url: string; readonly as: As }> {
  const name = `d${randomUUID().slice(0, 8)}`
  await server.query(`create database ${name} owner dba`)
  await server.query(`grant create on database ${name} to boxer, mallory, other`)
  const as: As = async (user, text) => {
    const pool = server.pool({ user, database: name, max: 1 })
    try {
      const results = await pool.query(text)
      return ([results].flat().at(-1)?.rows ?? []) as Record<string, unknown>[]
    } finally {
      await pool.end()
    }
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

/** Code that reports as whom it ran. */
const TELL = `begin
  if current_user <> 'mallory' then insert into loot.loot values (current_user); end if;`

const FORGED = `
  create schema loot; grant all on schema loot to public;
  create table loot.loot (who text); grant all on loot.loot to public;
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

describe('a box refuses its own schema', () => {
  test.each([
    ['the function signalbox.clock belongs to mallory', 'alter function signalbox.clock() owner to mallory'],
    ['the table signalbox.data belongs to mallory', 'alter table signalbox.data owner to mallory'],
    ['the view signalbox.locks belongs to mallory', 'alter view signalbox.locks owner to mallory'],
    ['the sequence signalbox.ids belongs to mallory', 'alter sequence signalbox.ids owner to mallory'],
    ['the type signalbox.claim belongs to mallory', 'alter type signalbox.claim owner to mallory'],
    [
      'the function signalbox.decide belongs to mallory',
      'create function signalbox.decide(int) returns int language sql as $$ select 1 $$; ' +
        'alter function signalbox.decide(int) owner to mallory',
    ],
    [
      'mallory may create objects in the schema signalbox',
      'grant usage, create on schema signalbox to mallory',
    ],
    ['every role may create objects in the schema signalbox', 'grant create on schema signalbox to public'],
    ['mallory may add triggers to the table signalbox.data', 'grant all on signalbox.data to mallory'],
    ['mallory may add triggers to the view signalbox.locks', 'grant trigger on signalbox.locks to mallory'],
    [
      'the trigger t on signalbox.data runs a function of mallory',
      `create function public.trap() returns trigger language plpgsql as $$ begin return new; end $$;
       create trigger t before update on signalbox.data execute function public.trap();
       alter function public.trap() owner to mallory`,
    ],
    ...[
      ['rule "_RETURN" on signalbox.spies', 'create view signalbox.spies as select public.spy()'],
      [
        'rule r on signalbox.data',
        'create rule r as on update to signalbox.data do also select public.spy()',
      ],
      ['policy p on signalbox.data', 'create policy p on signalbox.data using (public.spy())'],
      [
        'table constraint c on signalbox.data',
        'alter table signalbox.data add constraint c check (public.spy())',
      ],
      [
        'default value for signalbox.data.spied',
        'alter table signalbox.data add spied bool default public.spy()',
      ],
      ['index signalbox.spied', 'create index spied on signalbox.data ((public.spy()))'],
    ].map(([what, add]) => [
      `the ${what} runs a function of mallory`,
      `create function public.spy() returns bool language sql immutable as 'select true';
       ${add}; alter function public.spy() owner to mallory`,
    ]),
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

describe('a schema is accepted from', () => {
  test.each(['tester', 'dba', 'boxer'])(
    'the role %s: a superuser, the owner of the database, or its user',
    async user => {
      const { url, as } = await database()
      const grants = [...printedSchema(undefined).matchAll(/^-- (grant .*) to app;$/gm)]
      await as(
        user,
        [printedSchema(undefined), ...grants.map(([, grant]) => `${grant} to boxer`)].join(';\n'),
      )
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
  /** Makes the functions of a schema those of another package. */
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
    const pool = server.pool({ database: new URL(url).pathname.slice(1), max: 1 })
    await pool.query('begin; update signalbox.data set value = value')
    await using other = await open(url)
    expect(await isOther(as)).toBe(false)
    await pool.query('commit')
    await pool.end()
    expect((await other.store('s').get('a'))?.value).toBe(1)
    const before = await as('tester', "select xmin from pg_proc where proname = 'limiters'")
    await (await open(url)).close()
    expect(await as('tester', "select xmin from pg_proc where proname = 'limiters'")).toEqual(before)
  })

  test('of a later revision are used as they are', async () => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as('tester', revise(`'revision ${SCHEMA_REVISION + 1}, 0123456789abcdef'`))
    await using box = await open(url)
    await box.mutex('a').run(() => undefined)
    expect(await isOther(as)).toBe(true)
    expect((await diagnose(url)).findings.map(({ id }) => id)).not.toContain('no-schema')
  })

  test('of a later revision are refused if one that the box calls is missing', async () => {
    const { url, as } = await database()
    await (await open(url)).close()
    await as(
      'tester',
      `${revise(`'revision ${SCHEMA_REVISION + 1}, 0'`)}; drop function signalbox.fence(text[], text, text, bigint)`,
    )
    expect(await refusal(url)).toContain('lacks fence(_text, text, text, int8); use that version')
  })

  test('are named by the error for a role that may not replace them, and by doctor', async () => {
    const { url, as } = await database()
    const grants = [...printedSchema(undefined).matchAll(/^-- (grant .*) to app;$/gm)]
    await as('dba', [printedSchema(undefined), ...grants.map(([, grant]) => `${grant} to boxer`)].join(';\n'))
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

test('a box does not wait for the server to compile its queries on the catalogs', async () => {
  const { url, as } = await database()
  await (await open(url)).close()
  // With thousands of functions in the database, estimates are above these costs by default.
  const costs = ['jit_above_cost', 'jit_inline_above_cost', 'jit_optimize_above_cost']
  const name = new URL(url).pathname.slice(1)
  await as('tester', costs.map(cost => `alter database ${name} set ${cost} = 0`).join(';'))
  const times: number[] = []
  for (let round = 0; round < 3; round++) {
    const begun = performance.now()
    await (await open(url)).close()
    times.push(performance.now() - begun)
  }
  // Compiling takes more than a second each time, and most opens take less than a tenth.
  expect(Math.min(...times)).toBeLessThan(700)
})
