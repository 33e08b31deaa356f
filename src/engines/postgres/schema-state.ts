import type { Query } from './clients/sql-client.js'
import { stampOf, type SchemaStamp } from './schema.js'
import { untrustedQuery } from './untrusted.js'

/** The state of a schema, from the catalogs of the server. */
export interface SchemaState extends SchemaStamp {
  readonly isStandby: boolean
  /** The name of the user. */
  readonly user: string
  /** The reasons why another role can run code as this user, as one text; undefined if there are none. */
  readonly untrusted: string | undefined
  /** The owner of the function `version`; undefined without such a function. */
  readonly owner: string | undefined
  /** The functions that boxes of this package call, and that are missing. */
  readonly missing: readonly string[]
}

/** Reads the version from the source of its function, which must not be called before its owner is known. */
const stateQuery = (): string => `
  with own as materialized (
    select p.oid, p.proname, p.prosrc, p.proowner, p.pronargs, p.proargtypes from pg_proc p
      where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = $1::text)
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
    'untrusted', (${untrustedQuery('$1')}),
    'version', coalesce((select substring(v.prosrc from '[0-9]+')::numeric from v), 0),
    'comment', (select obj_description(v.oid, 'pg_proc') from v),
    'owner', (select pg_get_userbyid(v.proowner) from v),
    'missing', (
      select coalesce(json_agg(w.signature), '[]') from json_array_elements_text($2::text::json) w(signature)
        where w.signature not in (select s.signature from signatures s)
    )
  )::text`

/** Reads the state of a schema, from catalogs only. @param called the functions that a box calls, with their types */
export async function schemaState(
  query: Query,
  schema: string,
  called: readonly string[],
): Promise<SchemaState> {
  const text = await query(stateQuery(), [schema, JSON.stringify(called)])
  const { version, comment, owner, untrusted, ...others } = JSON.parse(text as string) as {
    readonly isStandby: boolean
    readonly user: string
    readonly untrusted: string | null
    readonly version: number
    readonly comment: string | null
    readonly owner: string | null
    readonly missing: readonly string[]
  }
  return {
    ...stampOf(version, comment),
    ...others,
    untrusted: untrusted ?? undefined,
    owner: owner ?? undefined,
  }
}
