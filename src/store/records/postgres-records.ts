import { InvalidArgumentError, shown } from '../../errors.js'
import { checkOptions } from '../../options.js'
import type { FoundRecord, Records } from './records.js'

/** A `Pool` or a `Client` of `pg`, as far as it is needed. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** Options of {@link postgresRecords}. */
export interface PostgresRecordsOptions {
  /** The table, optionally with its schema. It is created if it is missing. Default: `signalbox_records`. */
  readonly table?: string | undefined
}

/** The error codes of conflicts with concurrent transactions: nothing was written. */
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const NO_TABLE = '42P01'
/** Distinguishes its advisory locks from those of other programs. */
const MAKING = 7_162_518

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
  readonly #table: string

  constructor(client: PostgresClient, table: string) {
    this.#client = client
    this.#table = table
  }

  async get(key: string): Promise<FoundRecord<string> | undefined> {
    const sql = `select record as text, version::text as version from ${this.#table} where key = $1`
    const [row] = await this.#query(sql, [key])
    return row as FoundRecord<string> | undefined
  }

  async compareAndSet(
    key: string,
    version: string | undefined,
    text: string,
    keep: number | undefined,
  ): Promise<string | undefined> {
    const until = `now() + $3::float8 * interval '1 millisecond'`
    const write =
      version === undefined
        ? `insert into ${this.#table} (key, record, keep_until) values ($1, $2, ${until})
           on conflict (key) do nothing`
        : `update ${this.#table} set record = $2, keep_until = ${until}, version = default
           where key = $1 and version = $4`
    const values = [key, text, keep ?? null, ...(version === undefined ? [] : [version])]
    try {
      const sql = `${keep === undefined ? '' : this.#dropSome()} ${write} returning version::text as version`
      const [row] = await this.#query(sql, values)
      return (row as { version: string } | undefined)?.version
    } catch (error) {
      const code = codeOf(error)
      if (code === SERIALIZATION_FAILURE || code === DEADLOCK) return undefined
      throw error
    }
  }

  /** Deletes expired rows with each write, so that the table stays small. */
  #dropSome(): string {
    return `with over as (
        select key from ${this.#table} where keep_until < now() and key <> $1 limit 8 for update skip locked
      ), dropped as (delete from ${this.#table} where key in (select key from over))`
  }

  async #query(sql: string, values: unknown[]): Promise<unknown[]> {
    try {
      return (await this.#client.query(sql, values)).rows
    } catch (error) {
      if (codeOf(error) !== NO_TABLE) throw error
      await this.#makeTable()
      return (await this.#client.query(sql, values)).rows
    }
  }

  async #makeTable(): Promise<void> {
    const name = this.#table.replace('.', '_')
    // "If not exists" alone fails in several ways when two clients create the same table at once. So they do it one
    // after another: all of this is one transaction, and the lock ends with it. An identity column continues after
    // deletions, so no version is used twice.
    await this.#client.query(
      `select pg_advisory_xact_lock(hashtextextended('${name}', ${MAKING}));
       create table if not exists ${this.#table} (
         key text collate "C" primary key,
         record text not null,
         version bigint generated always as identity,
         keep_until timestamptz
       );
       create index if not exists ${name}_keep_until on ${this.#table} (keep_until)
         where keep_until is not null`,
    )
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | undefined)?.code
}
