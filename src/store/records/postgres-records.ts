import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import { codeOf, provideTable, type PostgresClient } from './postgres-table.js'
import type { FoundRecord, Records } from './records.js'

/** Options of {@link postgresRecords}. */
export interface PostgresRecordsOptions {
  /** The table, optionally with its schema. It is created if it is missing. Default: `signalbox_records`. */
  readonly table?: string | undefined
}

/** The error codes of conflicts with concurrent transactions: nothing was written. */
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const NO_TABLE = '42P01'

/**
 * Keeps records as rows of a table in PostgreSQL 12 or later. The caller passes, and later closes, a `Pool` of `pg`, or
 * a `Client` outside of transactions. It must connect to the primary server.
 * @throws InvalidArgumentError
 */
export function postgresRecords(
  client: PostgresClient,
  options: PostgresRecordsOptions = {},
): Records<string> {
  checkOptions(options, ['table'])
  const { table = 'signalbox_records' } = options
  if (typeof client?.query !== 'function')
    throw new InvalidArgumentError(`client must be a Pool or a Client of pg, not ${shown(client)}`)
  if (typeof table !== 'string' || !/^([a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*$/.test(table))
    throw new InvalidArgumentError(
      `table must be a name of lower-case letters, digits and _, with or without a schema, not ${shown(table)}`,
    )
  return new PostgresRecords(client, table)
}

class PostgresRecords implements Records<string> {
  readonly #client: PostgresClient
  readonly #given: string
  /** The name of the table with its schema, once it has been checked. */
  #table: Promise<string> | undefined

  constructor(client: PostgresClient, table: string) {
    this.#client = client
    this.#given = table
  }

  async get(key: string): Promise<FoundRecord<string> | undefined> {
    const [row] = await this.#query(
      table =>
        `select record as text, version::pg_catalog.text as version from ${table} where key operator(pg_catalog.=) $1`,
      [key],
    )
    return row as FoundRecord<string> | undefined
  }

  async compareAndSet(
    key: string,
    version: string | undefined,
    text: string,
    keep: number | undefined,
  ): Promise<string | undefined> {
    const until = `pg_catalog.now() operator(pg_catalog.+) ($3::double precision operator(pg_catalog.*) interval '1 millisecond')`
    const write = (table: string): string =>
      version === undefined
        ? `insert into ${table} (key, record, keep_until) values ($1, $2, ${until})
           on conflict (key) do nothing`
        : `update ${table} set record = $2, keep_until = ${until}, version = default
           where key operator(pg_catalog.=) $1 and version operator(pg_catalog.=) $4`
    const values = [key, text, keep ?? null, ...(version === undefined ? [] : [version])]
    try {
      const [row] = await this.#query(
        table =>
          `${keep === undefined ? '' : dropSome(table)} ${write(table)} returning version::pg_catalog.text as version`,
        values,
      )
      return (row as { version: string } | undefined)?.version
    } catch (error) {
      const code = codeOf(error)
      if (code === SERIALIZATION_FAILURE || code === DEADLOCK) return undefined
      throw error
    }
  }

  async #query(sql: (table: string) => string, values: unknown[]): Promise<unknown[]> {
    try {
      return (await this.#client.query(sql(await this.#provided()), values)).rows
    } catch (error) {
      if (codeOf(error) !== NO_TABLE) throw error
      this.#table = undefined
      return (await this.#client.query(sql(await this.#provided()), values)).rows
    }
  }

  /** Checks the table before the first statement. The next call tries again after a failure. */
  async #provided(): Promise<string> {
    const table = (this.#table ??= provideTable(this.#client, this.#given))
    try {
      return await table
    } catch (error) {
      if (this.#table === table) this.#table = undefined
      throw error
    }
  }
}

/** Deletes expired rows with each write, so that the table stays small. */
function dropSome(table: string): string {
  return `with over as (
      select key from ${table}
        where keep_until operator(pg_catalog.<) pg_catalog.now() and key operator(pg_catalog.<>) $1
        limit 8 for update skip locked
    ), dropped as (delete from ${table} where key operator(pg_catalog.=) any (select key from over))`
}
