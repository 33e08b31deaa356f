import { schemaIdentifier } from './postgres-url.js'

/** A call of a function of the schema, as a statement. */
export interface FunctionCall<P extends string> {
  readonly text: string
  /** Returns the values of the statement for arguments by the names of the function's parameters. */
  readonly values: (args: Readonly<Record<P, string>>) => string[]
}

const DECIDE_ONE = {
  session: 'text',
  host: 'text',
  pid: 'int4',
  label: 'text',
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
  session: 'text',
  host: 'text',
  pid: 'int4',
  label: 'text',
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
const ALIVE = { session: 'text', ids: 'text[]', homes: 'text[]', names: 'text[]' } as const
const RESERVED_OR_GONE = { names: 'text[]', ids: 'text[]' } as const
const INSPECT = { prefix: 'text', exact: 'bool' } as const
const FENCE = { wanted: 'text[]', home: 'text', request: 'text', number: 'int8' } as const
const SEND_NOTICES = { channels: 'text[]', payloads: 'text[]' } as const

/** The statements that a box sends to the server. */
export interface Statements {
  readonly decideOne: FunctionCall<keyof typeof DECIDE_ONE>
  readonly decide: FunctionCall<keyof typeof DECIDE>
  /** A sign of life of a session. */
  readonly alive: FunctionCall<keyof typeof ALIVE>
  readonly endSigns: string
  readonly reservedOrGone: FunctionCall<keyof typeof RESERVED_OR_GONE>
  readonly inspect: FunctionCall<keyof typeof INSPECT>
  readonly rowsOf: string
  /** Lists names of rows from a prefix on, and after a name, as JSON. */
  readonly names: string
  /** Fails outside of a transaction, and makes no other statement wait. */
  readonly begun: string
  readonly fence: FunctionCall<keyof typeof FENCE>
  /** Inserts the rows of values that a transaction of the caller's will write. */
  readonly prepareValues: string
  readonly sendNotices: FunctionCall<keyof typeof SEND_NOTICES>
  /** The number of the transaction that it is part of, as text. */
  readonly transactionNumber: string
  /** Lists those of the given transactions that have ended, and whether each has committed, as JSON. */
  readonly endedTransactions: string
  readonly decideLimiters: FunctionCall<keyof typeof DECIDE_LIMITERS>
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
  const call = <P extends string>(name: string, parameters: Readonly<Record<P, Type>>): FunctionCall<P> => {
    const names = Object.keys(parameters) as P[]
    const types = names.map(each => parameters[each])
    called.push(`${name}(${types.map(type => type.replace(/^(.*)\[\]$/, '_$1')).join(', ')})`)
    const casts = names.map((each, index) => `${each} => ${parameter(index + 1, parameters[each])}`)
    return {
      text: `select ${own}.${name}(${casts.join(', ')})::pg_catalog.text`,
      values: args => names.map(each => args[each]),
    }
  }
  return {
    decideOne: call('decide_one', DECIDE_ONE),
    decide: call('decide', DECIDE),
    alive: call('alive', ALIVE),
    endSigns: call('end_signs', { session: 'text' }).text,
    reservedOrGone: call('reserved_or_gone', RESERVED_OR_GONE),
    inspect: call('inspect', INSPECT),
    rowsOf: call('rows_of', { wanted: 'text' }).text,
    // Without a function of its own, it also works on a schema of an earlier package.
    names:
      `select coalesce(pg_catalog.json_agg(n.name), '[]')::pg_catalog.text from (select k.name from ${own}.keys k ` +
      'where k.name operator(pg_catalog.>=) $1::pg_catalog.text and k.name operator(pg_catalog.>) $2::pg_catalog.text ' +
      'order by k.name limit $3::pg_catalog.text::pg_catalog.int8) n',
    begun: `lock table ${own}.data in access share mode`,
    fence: call('fence', FENCE),
    prepareValues: call('prepare_values', { wanted: 'text[]' }).text,
    sendNotices: call('send_notices', SEND_NOTICES),
    transactionNumber: 'select pg_catalog.pg_current_xact_id()::pg_catalog.text',
    endedTransactions:
      "select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(n.number, n.status operator(pg_catalog.=) 'committed'" +
      ")), '[]')::pg_catalog.text from (select u.number, coalesce(pg_catalog.pg_xact_status(u.number::pg_catalog.xid8), '') as status " +
      'from pg_catalog.unnest($1::pg_catalog.text::pg_catalog.text[]) u(number)) n ' +
      "where n.status operator(pg_catalog.<>) 'in progress'",
    decideLimiters: call('decide_limiters', DECIDE_LIMITERS),
    limiters: call('limiters', {}).text,
    clock: 'select extract(epoch from pg_catalog.clock_timestamp())::pg_catalog.text',
    called,
  }
}

type Type =
  | 'bool'
  | 'float8'
  | 'int4'
  | 'int8'
  | 'text'
  | 'float8[]'
  | 'int4[]'
  | 'int8[]'
  | 'text[]'
  | 'uuid[]'

/** A parameter of a statement, which is sent as text. */
function parameter(number: number, type: Type): string {
  return `$${number}::pg_catalog.text::pg_catalog.${type}`
}
