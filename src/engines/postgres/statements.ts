import { arrayText } from './clients/sql-client.js'
import { schemaIdentifier } from './postgres-url.js'

type Argument = string | number | boolean | readonly (string | number)[]

/** A call of a function of the schema, as a statement. */
export interface FunctionCall<P extends string> {
  readonly text: string
  /** Returns the values of the statement for arguments by the names of the function's parameters. */
  readonly values: (args: Readonly<Record<P, Argument>>) => string[]
}

/** The parameters of functions, with their types. */
const SENDER = { session: 'text', host: 'text', pid: 'int4', label: 'text' } as const
const DECIDE_ONE = {
  ...SENDER,
  row_timeout: 'int4',
  kind: 'int4',
  name: 'text',
  id: 'text',
  following: 'text',
  number: 'int8',
  lease: 'float8',
  ttl: 'float8',
  heartbeat: 'float8',
  its_label: 'text',
  swept: 'float8[]',
} as const
const DECIDE = {
  ...SENDER,
  durable: 'bool',
  within: 'bool',
  row_timeout: 'int4',
  waits: 'bool',
  locked: 'text[]',
  kinds: 'int4[]',
  names: 'text[]',
  ids: 'text[]',
  nexts: 'text[]',
  numbers: 'int8[]',
  leases: 'float8[]',
  ttls: 'float8[]',
  heartbeats: 'float8[]',
  labels: 'text[]',
  steps: 'int4[]',
  claim_of: 'int4[]',
  claim_names: 'text[]',
  claim_modes: 'int4[]',
  claim_permits: 'int4[]',
  claim_maxima: 'int4[]',
  claim_keys: 'text[]',
  value_of: 'int4[]',
  value_roles: 'int4[]',
  value_names: 'text[]',
  value_versions: 'int8[]',
  contents: 'text[]',
  mark_of: 'int4[]',
  marks: 'uuid[]',
  swept: 'float8[]',
} as const
const DECIDE_LIMITERS = {
  wanted: 'text[]',
  expected: 'int8[]',
  decided: 'float8',
  slack: 'float8',
  contents: 'text[]',
  requests: 'text[]',
  answers: 'text[]',
  swept: 'float8[]',
} as const
/** The statements that a box sends to the server. */
export type Statements = ReturnType<typeof statementsIn>

/**
 * Returns the statements of a box. All values and results are text, so that every client passes them on unchanged. Each
 * name has its schema, because the search path may be set by a role or by a transaction of the caller's.
 */
export function statementsOf(schema: string): Statements {
  return statementsIn(schema)
}

function statementsIn(schema: string) {
  const own = schemaIdentifier(schema)
  const called: string[] = []
  const call = <P extends string>(name: string, parameters: Readonly<Record<P, Type>>): FunctionCall<P> => {
    const names = Object.keys(parameters) as P[]
    const types = names.map(each => parameters[each])
    called.push(`${name}(${types.map(type => type.replace(/^(.*)\[\]$/, '_$1')).join(', ')})`)
    const casts = names.map(
      (each, index) => `${each} => $${index + 1}::pg_catalog.text::pg_catalog.${parameters[each]}`,
    )
    return {
      text: `select ${own}.${name}(${casts.join(', ')})::pg_catalog.text`,
      values: args => names.map(each => argumentText(args[each])),
    }
  }
  return {
    decideOne: call('decide_one', DECIDE_ONE),
    decide: call('decide', DECIDE),
    /** A sign of life of a session. */
    alive: call('alive', { session: 'text', ids: 'text[]', homes: 'text[]', names: 'text[]' }),
    endSigns: call('end_signs', { session: 'text' }).text,
    reservedOrGone: call('reserved_or_gone', { names: 'text[]', ids: 'text[]' }),
    inspect: call('inspect', { prefix: 'text', exact: 'bool' }),
    rowsOf: call('rows_of', { wanted: 'text' }).text,
    /**
     * Lists names of rows from a prefix on, and after a name, as JSON. Without a function of its own, it also works on a
     * schema of an earlier package.
     */
    names:
      `select coalesce(pg_catalog.json_agg(n.name), '[]')::pg_catalog.text from (select k.name from ${own}.keys k ` +
      'where k.name operator(pg_catalog.>=) $1::pg_catalog.text and k.name operator(pg_catalog.>) $2::pg_catalog.text ' +
      'order by k.name limit $3::pg_catalog.text::pg_catalog.int8) n',
    /** Fails outside of a transaction, and makes no other statement wait. */
    begun: `lock table ${own}.data in access share mode`,
    fence: call('fence', { wanted: 'text[]', home: 'text', request: 'text', number: 'int8' }),
    /** Inserts the rows of values that a transaction of the caller's will write. */
    prepareValues: call('prepare_values', { wanted: 'text[]' }).text,
    sendNotices: call('send_notices', { channels: 'text[]', payloads: 'text[]' }),
    /** The number of the transaction that it is part of, as text. */
    transactionNumber: 'select pg_catalog.pg_current_xact_id()::pg_catalog.text',
    /** Lists those of the given transactions that have ended, and whether each has committed, as JSON. */
    endedTransactions:
      "select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(n.number, n.status operator(pg_catalog.=) 'committed'" +
      ")), '[]')::pg_catalog.text from (select u.number, coalesce(pg_catalog.pg_xact_status(u.number::pg_catalog.xid8), '') as status " +
      'from pg_catalog.unnest($1::pg_catalog.text::pg_catalog.text[]) u(number)) n ' +
      "where n.status operator(pg_catalog.<>) 'in progress'",
    decideLimiters: call('decide_limiters', DECIDE_LIMITERS),
    limiters: call('limiters', {}).text,
    /** The seconds since 1970, as text. */
    clock: 'select extract(epoch from pg_catalog.clock_timestamp())::pg_catalog.text',
    /** The functions of the schema that these statements call, with the names of their types in the catalog. */
    called: called as readonly string[],
  }
}

type Base = 'bool' | 'float8' | 'int4' | 'int8' | 'text' | 'uuid'
type Type = Base | `${Base}[]`

function argumentText(argument: Argument): string {
  return typeof argument === 'object' ? arrayText(argument) : String(argument)
}
