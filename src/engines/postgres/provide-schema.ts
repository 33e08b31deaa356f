import { UnavailableError } from '../../errors.js'
import { SqlError, type Query, type SqlClient } from './clients/sql-client.js'
import { lackingRights } from './rights.js'
import { SCHEMA_VERSION, schemaText } from './schema.js'
import { statementsOf } from './statements.js'

/** The oldest supported major version of the server. */
export const MIN_SERVER = 13

/** SQLSTATE: the server accepts no writes. */
const READ_ONLY = '25006'

/** The search path under which no objects of other roles are found. */
export const SAFE_PATH = 'pg_catalog, pg_temp'

/** SQLSTATEs: the schema, function or column does not exist. */
const ABSENT = ['3F000', '42883', '42P01']

/**
 * Creates the schema if it is missing, or older than this package.
 * @throws UnavailableError if the schema is newer, the server is too old, or the user lacks a right on existing
 * objects; SqlError if the server rejects a statement
 */
export async function provideSchema(sql: SqlClient, schema: string): Promise<void> {
  const server = String(await sql.query('show server_version', []))
  if (Number.parseInt(server, 10) < MIN_SERVER)
    throw new UnavailableError(
      `the server ${sql.name} is PostgreSQL ${server}, and Signalbox needs ${MIN_SERVER} or later`,
      { engine: sql.name },
    )
  const lacking = await withSafePath(sql, async query => {
    if ((await query('select pg_is_in_recovery()::text', [])) === 'true')
      throw new SqlError('the server is a standby', READ_ONLY, false, undefined)
    return lackingRights(query, schema)
  })
  if (lacking.length > 0)
    throw new UnavailableError(
      `the user of ${sql.name} lacks ${lacking.join(', ')}; \`signalbox schema postgres\` prints the schema and the ` +
        'rights that are needed',
      { engine: sql.name },
    )
  const version = await schemaVersion(sql, schema)
  if (version > SCHEMA_VERSION)
    throw new UnavailableError(`the schema ${schema} was made by a newer version of Signalbox`, {
      engine: sql.name,
    })
  // Without the lock, two boxes that create it at once would make each other fail. A box that has waited sees the
  // other's objects only after it has opened a table, which `if not exists` does not do.
  if (version < SCHEMA_VERSION)
    await sql.run(
      `set local search_path = ${SAFE_PATH}; select pg_advisory_xact_lock(hashtext('signalbox')); ` +
        `select from pg_namespace limit 0; ${schemaText(schema)}`,
    )
}

/**
 * Runs statements in one transaction in which names mean built-in objects, no matter who may create objects in the
 * database. A pooler that gives each statement another connection makes it fail.
 */
export function withSafePath<T>(sql: SqlClient, work: (query: Query) => Promise<T>): Promise<T> {
  return sql.transaction(async query => {
    await query("select pg_catalog.set_config('search_path', $1::pg_catalog.text, true)", [SAFE_PATH])
    return work(query)
  })
}

/** The version of the schema; 0 if it is missing. @throws SqlError */
export async function schemaVersion(sql: SqlClient, schema: string): Promise<number> {
  try {
    return Number(await sql.query(statementsOf(schema).version, []))
  } catch (error) {
    if (error instanceof SqlError && ABSENT.includes(error.code!)) return 0
    throw error
  }
}
