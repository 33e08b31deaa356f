import { UnavailableError } from '../../base/errors.js'
import { READ_ONLY, SqlError, type SqlStatements } from './clients/sql-client.js'
import { SAFE_PATH, schemaText, useOf } from './schema.js'
import { schemaState, type SchemaState } from './schema-state.js'
import { trustAdvice } from './untrusted.js'

/** The oldest supported major version of the server. */
export const MIN_SERVER = 13

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
  const state = await schemaState(sql, schema)
  if (state.isStandby) throw new SqlError('the server is a standby', READ_ONLY, false, undefined)
  const refuseUntrusted = ({ user, untrusted }: SchemaState): void => {
    if (untrusted === null) return
    throw refused(
      `the schema ${schema} of ${sql.name} is not safe for the user ${user}: ${untrusted}. ${trustAdvice('schema')}`,
    )
  }
  refuseUntrusted(state)
  if (state.lacking.length > 0)
    throw refused(
      `the user of ${sql.name} lacks ${state.lacking.join(', ')}; \`signalbox schema postgres\` prints the schema and the ` +
        'rights that are needed',
    )
  const use = useOf(state)
  if (use === 'refuse') throw refused(`the schema ${schema} was made by a newer version of Signalbox`)
  if (use === 'replace') {
    await replaceFunctions(sql, schema, state)
    // Default privileges may have given others rights on the new objects.
    refuseUntrusted(await schemaState(sql, schema))
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
