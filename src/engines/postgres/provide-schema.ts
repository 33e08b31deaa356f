import { UnavailableError } from '../../errors.js'
import { SqlError, type SqlClient } from './clients/sql-client.js'
import { SCHEMA_VERSION, schemaText } from './schema.js'
import { statementsOf } from './statements.js'

/** There is no such schema, function or column. */
const ABSENT = ['3F000', '42883', '42P01']

/**
 * Creates the schema if it is not there, or is older than this package.
 * @throws UnavailableError when it is newer; SqlError when the server refuses, or the user lacks the rights
 */
export async function provideSchema(sql: SqlClient, schema: string): Promise<void> {
  const version = await versionOf(sql, schema)
  if (version > SCHEMA_VERSION)
    throw new UnavailableError(`the schema ${schema} was made by a newer version of Signalbox`, {
      engine: sql.name,
    })
  // Two that create it at once would fail by turns. One that has waited learns what the other has created only when
  // it opens a table, and not from `if not exists`.
  if (version < SCHEMA_VERSION)
    await sql.run(
      `select pg_advisory_xact_lock(hashtext('signalbox')); select from pg_namespace limit 0; ${schemaText(schema)}`,
    )
}

async function versionOf(sql: SqlClient, schema: string): Promise<number> {
  try {
    return Number(await sql.query(statementsOf(schema).version, []))
  } catch (error) {
    if (error instanceof SqlError && ABSENT.includes(error.code!)) return 0
    throw error
  }
}
