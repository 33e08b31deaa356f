import { schemaIdentifier } from './postgres-url.js'

/** The statements that a box sends to the server. */
export interface Statements {
  readonly decideOne: string
  readonly decide: string
  /** A sign of life of a session. */
  readonly alive: string
  readonly endSigns: string
  readonly reservedOrGone: string
  readonly inspect: string
  readonly rowsOf: string
  /** Lists names of rows from a prefix on, and after a name, as JSON. */
  readonly names: string
  /** Fails outside of a transaction, and makes no other statement wait. */
  readonly begun: string
  readonly fence: string
  /** Inserts the rows of values that a transaction of the caller's will write. */
  readonly prepareValues: string
  readonly sendNotices: string
  /** The number of the transaction that it is part of, as text. */
  readonly transactionNumber: string
  /** Which of these transactions have ended, and whether each of these has committed, as JSON. */
  readonly endedTransactions: string
  readonly decideLimiters: string
  readonly limiters: string
  /** The seconds since 1970, as text. */
  readonly clock: string
  /** The functions of the schema that these statements call, with the names of their types in the catalog. */
  readonly called: readonly string[]
}

/**
 * Returns the statements of a box. All values and results are text, so that every client passes them on unchanged. Each
 * name has its schema, because the search path may be set by a role or by a transaction of the caller's.
 */
export function statementsOf(schema: string): Statements {
  const own = schemaIdentifier(schema)
  const called: string[] = []
  const call = (name: string, ...types: readonly Type[]): string => {
    called.push(`${name}(${types.map(type => type.replace(/^(.*)\[\]$/, '_$1')).join(', ')})`)
    return `select ${own}.${name}(${casts(types)})`
  }
  return {
    decideOne: call(
      'decide_one',
      ...(['text', 'text', 'int4', 'text', 'int4', 'int4', 'text', 'text', 'text', 'int8'] as const),
      ...(['float8', 'float8', 'float8', 'text', 'float8[]'] as const),
    ),
    decide: call(
      'decide',
      ...(['text', 'text', 'int4', 'text', 'bool', 'bool', 'int4', 'bool', 'text[]'] as const),
      ...(['int4[]', 'text[]', 'text[]', 'text[]', 'int8[]', 'float8[]', 'float8[]', 'float8[]'] as const),
      ...(['text[]', 'int4[]', 'int4[]', 'text[]', 'int4[]', 'int4[]', 'int4[]', 'text[]'] as const),
      ...(['int4[]', 'int4[]', 'text[]', 'int8[]', 'text[]', 'int4[]', 'uuid[]', 'float8[]'] as const),
    ),
    alive: call('alive', 'text', 'text[]', 'text[]', 'text[]'),
    endSigns: `${call('end_signs', 'text')}::pg_catalog.text`,
    reservedOrGone: call('reserved_or_gone', 'text[]', 'text[]'),
    inspect: call('inspect', 'text', 'bool'),
    rowsOf: call('rows_of', 'text'),
    // Without a function of its own, it also works on a schema of an earlier package.
    names:
      `select coalesce(pg_catalog.json_agg(n.name), '[]')::pg_catalog.text from (select k.name from ${own}.keys k ` +
      'where k.name operator(pg_catalog.>=) $1::pg_catalog.text and k.name operator(pg_catalog.>) $2::pg_catalog.text ' +
      'order by k.name limit $3::pg_catalog.text::pg_catalog.int8) n',
    begun: `lock table ${own}.data in access share mode`,
    fence: `${call('fence', 'text[]', 'text', 'text', 'int8')}::pg_catalog.text`,
    prepareValues: `${call('prepare_values', 'text[]')}::pg_catalog.text`,
    sendNotices: `${call('send_notices', 'text[]', 'text[]')}::pg_catalog.text`,
    transactionNumber: 'select pg_catalog.pg_current_xact_id()::pg_catalog.text',
    endedTransactions:
      "select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(n.number, n.status operator(pg_catalog.=) 'committed'" +
      ")), '[]')::pg_catalog.text from (select u.number, coalesce(pg_catalog.pg_xact_status(u.number::pg_catalog.xid8), '') as status " +
      'from pg_catalog.unnest($1::pg_catalog.text::pg_catalog.text[]) u(number)) n ' +
      "where n.status operator(pg_catalog.<>) 'in progress'",
    decideLimiters: call(
      'decide_limiters',
      ...(['text[]', 'int8[]', 'float8', 'float8', 'text[]', 'text[]', 'text[]', 'float8[]'] as const),
    ),
    limiters: call('limiters'),
    clock: 'select extract(epoch from pg_catalog.clock_timestamp())::pg_catalog.text',
    called,
  }
}

type Type =
  'bool' | 'float8' | 'int4' | 'int8' | 'text' | 'float8[]' | 'int4[]' | 'int8[]' | 'text[]' | 'uuid[]'

/** The parameters of a statement, cast from text to these types. */
function casts(types: readonly Type[]): string {
  return types.map((type, index) => `$${index + 1}::pg_catalog.text::pg_catalog.${type}`).join(', ')
}
