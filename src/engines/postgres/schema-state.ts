import type { SqlStatements } from './clients/sql-client.js'
import { lackingRights } from './rights.js'
import { SAFE_PATH, stampOf, type SchemaStamp } from './schema.js'
import { statementsOf } from './statements.js'
import { untrustedQuery } from './untrusted.js'

/** The parts of a state that the query returns as they are. */
interface Found {
  readonly isStandby: boolean
  /** The name of the user. */
  readonly user: string
  /** The reasons why another role can run code as this user, as one text; null if there are none. */
  readonly untrusted: string | null
  /** The owner of the function `version`; null without such a function. */
  readonly owner: string | null
  /** The functions that boxes of this package call, and that are missing. */
  readonly missing: readonly string[]
  /** The rights on existing objects of the schema that the user lacks. */
  readonly lacking: readonly string[]
}

/** The state of a schema, from the catalogs of the server. */
export type SchemaState = SchemaStamp & Found

/** Reads the version from the source of its function, which must not be called before its owner is known. */
const stateQuery = (schema: string): string => `
  with own as materialized (
    select p.oid, p.proname, p.prosrc, p.proowner, p.pronargs, p.proargtypes from pg_proc p
      where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = '${schema}')
  ), v as (
    select o.oid, o.prosrc, o.proowner from own o where o.proname = 'version' and o.pronargs = 0
  ), signatures as materialized (
    select o.proname || '(' || array_to_string(array(
        select t.typname from unnest(o.proargtypes) with ordinality a(type, place)
          join pg_type t on t.oid = a.type order by a.place
      ), ', ') || ')' as signature
      from own o
  )
  select json_build_object(
    'isStandby', pg_is_in_recovery(),
    'user', current_user,
    'untrusted', (${untrustedQuery(`'${schema}'`)}),
    'version', coalesce((select substring(v.prosrc from '[0-9]+')::numeric from v), 0),
    'comment', (select obj_description(v.oid, 'pg_proc') from v),
    'owner', (select pg_get_userbyid(v.proowner) from v),
    'missing', (
      select coalesce(json_agg(w.signature), '[]')
        from json_array_elements_text('${JSON.stringify(statementsOf(schema).called)}') w(signature)
        where w.signature not in (select s.signature from signatures s)
    ),
    'lacking', (${lackingRights(schema)})
  )::text`

/** Reads the state of a schema, from catalogs only. */
export async function schemaState(sql: SqlStatements, schema: string): Promise<SchemaState> {
  const text = await queryCatalogs(sql, stateQuery(schema))
  const { version, comment, ...found } = JSON.parse(text) as Found & {
    readonly version: number
    readonly comment: string | null
  }
  return { ...stampOf(version, comment), ...found }
}

/**
 * Runs a query in which names mean built-in objects, no matter who may create objects in the database. Returns its only
 * value, a text. The compiler takes a second for queries on catalogs of many functions, which take some milliseconds
 * without it.
 */
export async function queryCatalogs(sql: SqlStatements, query: string): Promise<string> {
  const settings = `select pg_catalog.set_config('search_path', '${SAFE_PATH}', true), pg_catalog.set_config('jit', 'off', true)`
  return (await sql.run(`${settings}; ${query}`)) as string
}
