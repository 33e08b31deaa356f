import { UnavailableError } from '../../base/errors.js'
import { READ_ONLY, SqlError, type Query, type SqlStatements } from './clients/sql-client.js'
import { lackingRights } from './rights.js'
import { schemaText, useOf } from './schema.js'
import { schemaState, type SchemaState } from './schema-state.js'
import { statementsOf } from './statements.js'
import { trustAdvice } from './untrusted.js'

/** The oldest supported major version of the server. */
export const MIN_SERVER = 13

/** The search path under which no objects of other roles are found. */
export const SAFE_PATH = 'pg_catalog, pg_temp'

/** SQLSTATE: the server ended a transaction because of idle_in_transaction_session_timeout. */
const IDLE_TOO_LONG = '25P03'

/** SQLSTATE: the user lacks a right. */
const DENIED = '42501'

/**
 * Creates the schema if it is missing, and replaces its functions if they are older than this package.
 * @throws UnavailableError if another role could run code as this user there, the schema is newer, the server is too
 * old, or the user lacks a right on existing objects; SqlError if the server rejects a statement
 */
export async function provideSchema(sql: SqlStatements, schema: string): Promise<void> {
  const refused = (text: string): UnavailableError => new UnavailableError(text, { engine: sql.name })
  const server = String(await sql.query('show server_version', []))
  if (Number.parseInt(server, 10) < MIN_SERVER)
    throw refused(
      `the server ${sql.name} is PostgreSQL ${server}, and Signalbox needs ${MIN_SERVER} or later`,
    )
  const { called } = statementsOf(schema)
  const [state, lacking] = await withSafePath(
    sql,
    async query => [await schemaState(query, schema, called), await lackingRights(query, schema)] as const,
  )
  if (state.isStandby) throw new SqlError('the server is a standby', READ_ONLY, false, undefined)
  const refuseUntrusted = ({ user, untrusted }: SchemaState): void => {
    if (untrusted === undefined) return
    throw refused(
      `the schema ${schema} of ${sql.name} is not safe for the user ${user}: ${untrusted}. ${trustAdvice('schema')}`,
    )
  }
  refuseUntrusted(state)
  if (lacking.length > 0)
    throw refused(
      `the user of ${sql.name} lacks ${lacking.join(', ')}; \`signalbox schema postgres\` prints the schema and the ` +
        'rights that are needed',
    )
  const use = useOf(state)
  if (use === 'refuse') throw refused(`the schema ${schema} was made by a newer version of Signalbox`)
  if (use === 'replace') {
    await replaceFunctions(sql, schema, state)
    // Default privileges may have given others rights on the new objects.
    refuseUntrusted(await withSafePath(sql, query => schemaState(query, schema, called)))
  } else if (state.missing.length > 0)
    throw refused(
      `the schema ${schema} was made by another version of Signalbox, and lacks ${state.missing.join(', ')}; use that ` +
        'version, or apply what `signalbox schema postgres` prints',
    )
}

async function replaceFunctions(sql: SqlStatements, schema: string, state: SchemaState): Promise<void> {
  // Without the lock, two boxes that create it at once would make each other fail. A box that has waited sees the
  // other's objects only after it has opened a table, which `if not exists` does not do.
  const text =
    `set local search_path = ${SAFE_PATH}; select pg_advisory_xact_lock(hashtext('signalbox')); ` +
    `select from pg_namespace limit 0; ${schemaText(schema)}`
  try {
    await sql.run(text)
  } catch (error) {
    if (state.version === 0 || !(error instanceof SqlError) || error.code !== DENIED) throw error
    throw new UnavailableError(
      `the functions of the schema ${schema} of ${sql.name} are older than this version of Signalbox, and its user may ` +
        `not replace them: apply what \`signalbox schema postgres\` prints as ${state.owner!}`,
      { engine: sql.name, cause: error },
    )
  }
}

/**
 * Runs statements in one transaction in which names mean built-in objects, no matter who may create objects in the
 * database. A pooler that gives each statement another connection makes it fail.
 */
export async function withSafePath<T>(sql: SqlStatements, work: (query: Query) => Promise<T>): Promise<T> {
  try {
    return await sql.transaction(async query => {
      // The compiler takes a second for queries on catalogs of many functions, which take some milliseconds without it.
      const settings =
        "select pg_catalog.set_config('search_path', $1::pg_catalog.text, true), pg_catalog.set_config('jit', 'off', true)"
      await query(settings, [SAFE_PATH])
      return work(query)
    })
  } catch (error) {
    throw (await idleTimeoutOf(sql, error)) ?? error
  }
}

/** The shortest timeout that allows for the time between two statements of a distant box, in milliseconds. */
const MIN_IDLE_TIMEOUT = 2000

/** Returns the error for a transaction whose connection was lost, if the server ends transactions too early. */
async function idleTimeoutOf(sql: SqlStatements, cause: unknown): Promise<SqlError | undefined> {
  if (!(cause instanceof SqlError) || (cause.code !== undefined && cause.code !== IDLE_TOO_LONG))
    return undefined
  const text = "select setting from pg_catalog.pg_settings where name = 'idle_in_transaction_session_timeout'"
  const timeout = Number(await sql.query(text, []).catch(() => 0))
  if (timeout === 0 || timeout >= MIN_IDLE_TIMEOUT) return undefined
  return new SqlError(
    `the server ended the transaction between two statements, because idle_in_transaction_session_timeout is ${timeout} ms; ` +
      `set ${MIN_IDLE_TIMEOUT} ms or more for this user`,
    IDLE_TOO_LONG,
    false,
    cause,
  )
}
