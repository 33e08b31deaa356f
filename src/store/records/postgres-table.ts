import { trustAdvice, untrustedQuery } from '../../engines/postgres/untrusted.js'
import { UnavailableError } from '../../base/errors.js'

/** A `Pool` or a `Client` of `pg`, as far as it is needed. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

const DUPLICATE_TABLE = '42P07'
/** Distinguishes its advisory locks from those of other programs. */
const MAKING = 7_162_518

/** The state of the table in the catalogs. */
interface TableState {
  readonly user: string
  /** The name of the table with its schema, quoted for SQL. */
  readonly name: string
  readonly exists: boolean
  /** The reasons why another role can run code as the user, as one text; null if there are none. */
  readonly untrusted: string | null
}

/**
 * Creates the table of records if it is missing. Statements on it name its schema and that of each function, operator
 * and type, because an object of another role could be found first in the client's search path.
 * @param given the name of the table, with or without a schema, of lower-case letters, digits and `_`
 * @returns the name with its schema, quoted for SQL
 * @throws UnavailableError if another role could run code as the user there; otherwise the error of the client
 */
export async function provideTable(client: PostgresClient, given: string): Promise<string> {
  let state = await tableState(client, given)
  if (!state.exists) {
    await createTable(client, state.name, `${given.replace('.', '_')}_keep_until`)
    state = await tableState(client, given)
  }
  const { user, name, untrusted } = state
  if (untrusted === null) return name
  throw new UnavailableError(
    `the table ${name} is not safe for the user ${user}: ${untrusted}. ${trustAdvice('table')}`,
  )
}

/** Reads only catalogs. The one text is one transaction on one connection, whose settings end with it. */
async function tableState(client: PostgresClient, given: string): Promise<TableState> {
  const [table, schema] = given.split('.').reverse() as [string, string?]
  const place = schema === undefined ? 'pg_catalog.current_schema()' : `'${schema}'`
  const untrusted = untrustedQuery("current_setting('signalbox.place')", `'${table}'`)
  const results = (await client.query(`
    select pg_catalog.set_config('signalbox.place', coalesce((
      select n.nspname from pg_catalog.pg_class c, pg_catalog.pg_namespace n
        where c.oid operator(pg_catalog.=) pg_catalog.to_regclass('${given}')
          and n.oid operator(pg_catalog.=) c.relnamespace
    ), ${place}), true);
    select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('jit', 'off', true);
    select current_user as user,
      coalesce(quote_ident(nullif(current_setting('signalbox.place'), '')) || '.', '') || '${table}' as name,
      exists (
        select from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = current_setting('signalbox.place') and c.relname = '${table}'
      ) as exists,
      (${untrusted}) as untrusted`)) as unknown as readonly { readonly rows: readonly TableState[] }[]
  return results.at(-1)!.rows[0]!
}

async function createTable(client: PostgresClient, name: string, index: string): Promise<void> {
  // Clients that create it at the same moment would fail in several ways. So they do it one after another: all of this
  // is one transaction, and the lock ends with it. An identity column continues after deletions, so no version is used
  // twice.
  const text = `
    select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('${index}'::pg_catalog.text, ${MAKING}::bigint));
    create table ${name} (
      key pg_catalog.text collate pg_catalog."C" primary key,
      record pg_catalog.text not null,
      version bigint generated always as identity,
      keep_until timestamp with time zone
    );
    create index if not exists ${index} on ${name} (keep_until) where keep_until is not null`
  try {
    await client.query(text)
  } catch (error) {
    // Another client has created it since it was looked for.
    if (codeOf(error) !== DUPLICATE_TABLE) throw error
  }
}

/** The SQLSTATE of an error of the client. */
export function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | undefined)?.code
}
