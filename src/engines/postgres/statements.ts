/** What a box sends to the server. */
export interface Statements {
  readonly decideOne: string
  readonly decide: string
  readonly look: string
  readonly inspect: string
  readonly rowsOf: string
  /** Fails outside of a transaction, and keeps no other statement waiting. */
  readonly begun: string
  readonly fence: string
  readonly makeRows: string
  readonly tell: string
  readonly notify: string
  readonly lockLimiter: string
  readonly keepLimiters: string
  readonly limiters: string
  readonly version: string
  /** The seconds since 1970, as text. */
  readonly clock: string
}

/** The statements of a box. All values and results are text, so that every client passes them on as they are. */
export function statementsOf(schema: string): Statements {
  return {
    decideOne:
      `select ${schema}.decide_one($1::text, $2::text, $3::text::int, $4::text, $5::text::int, $6::text::int, ` +
      '$7::text, $8::text, $9::text, $10::text::bigint, $11::text::float8, $12::text::float8, $13::text::float8, ' +
      '$14::text, $15::text::float8[])',
    decide:
      `select ${schema}.decide($1::text, $2::text, $3::text::int, $4::text, $5::text::boolean, $6::text::boolean, ` +
      '$7::text::int, $8::text::boolean, $9::text::text[], $10::text::int[], $11::text::text[], ' +
      '$12::text::text[], $13::text::text[], $14::text::bigint[], $15::text::float8[], $16::text::float8[], ' +
      '$17::text::float8[], $18::text::text[], $19::text::int[], $20::text::int[], $21::text::text[], ' +
      '$22::text::int[], $23::text::int[], $24::text::int[], $25::text::text[], $26::text::int[], ' +
      '$27::text::int[], $28::text::text[], $29::text::bigint[], $30::text::text[], $31::text::int[], ' +
      '$32::text::uuid[], $33::text::float8[])',
    look: `select ${schema}.look($1::text::text[], $2::text::text[])`,
    inspect: `select ${schema}.inspect($1::text, $2::text::boolean)`,
    rowsOf: `select ${schema}.rows_of($1::text)`,
    begun: `lock table ${schema}.data in access share mode`,
    fence: `select ${schema}.fence($1::text::text[], $2::text, $3::text, $4::text::bigint)::text`,
    makeRows: `select ${schema}.make_rows($1::text::text[], ${schema}.clock() operator(pg_catalog.+) 60000)::text`,
    tell: `select ${schema}.tell($1::text::text[], $2::text::text[])::text`,
    notify: 'select pg_catalog.pg_notify($1::text, $2::text)::text',
    lockLimiter: `select ${schema}.lock_limiter($1::text)`,
    keepLimiters:
      `select ${schema}.keep_limiters($1::text::text[], $2::text::bigint[], $3::text::float8, $4::text::float8, ` +
      '$5::text::text[], $6::text::float8[])',
    limiters: `select ${schema}.limiters()`,
    version: `select ${schema}.version()::text`,
    clock: 'select extract(epoch from pg_catalog.clock_timestamp())::pg_catalog.text',
  }
}
