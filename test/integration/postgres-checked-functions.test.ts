import { expect, test } from 'vitest'
import { open } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

test('plpgsql_check finds no faults in the functions of the schema', async () => {
  await using server = await startPostgres()
  await (await open(server.url)).close()
  await server.query('create extension plpgsql_check')
  const found = await server.query<{ place: string; message: string }>(`
    select p.oid::regprocedure::text || ' line ' || coalesce(c.lineno::text, '?') as place, concat_ws(' ', c.message, c.detail, c.context, c.statement) as message
      from pg_proc p join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql',
        lateral plpgsql_check_function_tb(p.oid) c
      where p.pronamespace = 'signalbox'::regnamespace`)
  expect(found.map(({ place, message }) => `${place}: ${message}`)).toEqual([])
})
