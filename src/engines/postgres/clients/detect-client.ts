import type { Clock } from '../../../clock.js'
import { InvalidArgumentError, shown } from '../../../errors.js'
import { placeName } from '../postgres-url.js'
import { LenderPool, type ClientLender } from './client-lender.js'
import { PgClient, type PgConnection, type PgPool } from './pg-client.js'
import { PGliteClient, type PGlite } from './pglite-client.js'
import { PostgresClient, type PostgresSql } from './postgres-client.js'
import { SinglePgClient } from './single-pg-client.js'
import type { SqlClient } from './sql-client.js'

interface Address {
  readonly host?: string | readonly string[] | undefined
  readonly port?: number | readonly number[] | undefined
  readonly database?: string | undefined
}

interface ExistingPool extends PgPool {
  readonly options: Address & { readonly max: number; readonly connectionString?: string }
  readonly ending: boolean
  on(event: 'error', listener: () => void): unknown
  listeners(event: 'error'): unknown[]
}

interface ExistingClient extends PgConnection, Address {
  /** Null before it is connected. */
  readonly processID: number | null
  readonly _ending: boolean
  readonly _queryable: boolean
  /** `I` outside of a transaction. Older versions of `pg` lack this. */
  getTransactionStatus?(): string | null
}

interface ExistingPGlite extends PGlite {
  readonly dataDir?: string
}

/**
 * Detects the kind of a client by its properties: a `Pool` or a `Client` of `pg`, a `sql` of `postgres`, a `PGlite`, or
 * a lender of clients.
 * @throws InvalidArgumentError if it is of another kind, or can't be used
 */
export function detectClient(client: unknown, schema: string, clock: Clock): SqlClient {
  if ((typeof client === 'object' || typeof client === 'function') && client !== null) {
    const has = (...methods: string[]): boolean =>
      methods.every(name => typeof Reflect.get(client, name) === 'function')
    if (has('unsafe', 'begin', 'listen'))
      return overSql(client as PostgresSql & { options: Address }, schema, clock)
    if (has('unsafe'))
      throw unusable('the sql of a transaction or of one connection; give the sql that made it')
    if (has('exec', 'query', 'transaction', 'listen'))
      return overPGlite(client as ExistingPGlite, schema, clock)
    if (has('exec', 'query', 'rollback')) throw unusable('a transaction of a PGlite; give the PGlite')
    if (has('connect', 'query', 'on') && 'totalCount' in client)
      return overPool(client as unknown as ExistingPool, schema, clock)
    if (has('connect', 'query', 'on') && 'processID' in client)
      return overClient(client as unknown as ExistingClient, schema, clock)
    if (has('connect', 'release') && !has('query'))
      return new PgClient(placeName('', schema), new LenderPool(client as ClientLender, clock), clock)
  }
  throw unusable(shown(client))
}

function overPool(pool: ExistingPool, schema: string, clock: Clock): SqlClient {
  const { connectionString, max } = pool.options
  if (pool.ending) throw unusable('a Pool that was ended')
  if (max < 2) throw unusable('a Pool of one connection; the box listens on one and needs another')
  // The pool replaces an idle connection that breaks. The listener stays, because a dropped connection can fail later.
  if (!pool.listeners('error').includes(ignore)) pool.on('error', ignore)
  const [, place] = /^\w+:\/\/(?:[^?]*@)?([^?]*)/.exec(connectionString ?? '') ?? []
  return new PgClient(placeName(place ?? placeOf(pool.options), schema), pool, clock)
}

function overClient(client: ExistingClient, schema: string, clock: Clock): SqlClient {
  const isConnected = client.processID !== null && !client._ending && client._queryable
  if (!isConnected) throw unusable('a Client that is not connected; connect it first')
  const status = client.getTransactionStatus?.() ?? 'I'
  if (status !== 'I') throw unusable('a Client that is inside a transaction')
  return new SinglePgClient(placeName(placeOf(client), schema), client, clock)
}

function overSql(sql: PostgresSql & { readonly options: Address }, schema: string, clock: Clock): SqlClient {
  return new PostgresClient(placeName(placeOf(sql.options), schema), { given: sql }, clock)
}

function overPGlite(pglite: ExistingPGlite, schema: string, clock: Clock): SqlClient {
  if (pglite.closed) throw unusable('a PGlite that was closed')
  return new PGliteClient(placeName(`pglite/${pglite.dataDir ?? ''}`, schema), pglite, clock)
}

function placeOf({ host = 'localhost', port = 5432, database = '' }: Address): string {
  return `${[host].flat().join()}:${[port].flat().join()}/${database}`
}

function unusable(what: string): InvalidArgumentError {
  return new InvalidArgumentError(
    `postgres must be a Pool or a Client of pg, a sql of postgres, a PGlite, or { connect, release }, not ${what}`,
  )
}

function ignore(): void {
  // The pool has ended the connection.
}
