/** What a box sends to the server. */
export interface Statements {
  readonly rows: string
  readonly found: string
  readonly change: string
  readonly lock: string
  /** Fails outside of a transaction, and keeps no other statement waiting. */
  readonly begun: string
  readonly fence: string
  readonly tell: string
  readonly notify: string
  readonly sweep: string
  readonly version: string
  /** The seconds since 1970, as text. */
  readonly clock: string
}

/** The statements of a box. All values and results are text, so that every client passes them on as
 * they are. */
export function statementsOf(schema: string): Statements {
  return {
    rows: `select ${schema}.rows($1::text::text[], $2::text::text[], $3::text::uuid[], $4::text::boolean)`,
    found: `select ${schema}.found($1::text, $2::text)`,
    change:
      `select ${schema}.change($1::text::float8, $2::text::float8, $3::text::boolean, $4::text::boolean, ` +
      `$5::text::bigint[], $6::text::bigint[], $7::text::text[], $8::text::bigint, $9::text::bigint[], ` +
      `$10::text::uuid[], $11::text::uuid[], $12::text::float8[], $13::text::boolean[])`,
    fence: `select ${schema}.fence($1::text::text[], $2::text, $3::text::bigint)::text`,
    begun: `lock table ${schema}.state in access share mode`,
    lock: `select ${schema}.lock($1::text::bigint[], $2::text::bigint[])`,
    notify: 'select pg_notify($1::text, $2::text)',
    tell: `select ${schema}.tell($1::text::text[], $2::text::text[])`,
    sweep: `select ${schema}.sweep($1::text, $2::text::int, $3::text::float8)`,
    version: `select ${schema}.version()::text`,
    clock: 'select extract(epoch from pg_catalog.clock_timestamp())::pg_catalog.text',
  }
}
