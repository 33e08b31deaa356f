/** What a box sends to the server. */
export interface Statements {
  readonly rows: string
  readonly found: string
  readonly change: string
  readonly lock: string
  readonly tell: string
  readonly sweep: string
  readonly version: string
}

/** The statements of a box. All values are text, so that every client gives them to the server as they are. */
export function statementsOf(schema: string): Statements {
  return {
    rows: `select ${schema}.rows($1::text::text[], $2::text::boolean, $3::text::uuid[])`,
    found: `select ${schema}.found($1::text, $2::text)`,
    change:
      `select ${schema}.change($1::text::float8, $2::text::float8, $3::text::boolean, $4::text::bigint[], ` +
      `$5::text::bigint[], $6::text::text[], $7::text::bigint, $8::text::uuid[], $9::text::float8[], ` +
      `$10::text::boolean[])`,
    lock: `select ${schema}.lock($1::text::bigint[], $2::text::bigint[])`,
    tell: `select ${schema}.tell($1::text::text[], $2::text::text[])`,
    sweep: `select ${schema}.sweep($1::text::float8)`,
    version: `select ${schema}.version()`,
  }
}
