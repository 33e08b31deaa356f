import type { Clock } from '../../../base/clock.js'
import { ifInstalled } from '../../../base/if-installed.js'
import { missingPackage } from '../../../base/missing-package.js'
import { InvalidArgumentError, shown } from '../../../base/errors.js'
import { placeName } from '../postgres-url.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { isNeonHttp, NEON_HTTP } from './callers-transaction.js'
import { LenderPool, type ClientLender } from './client-lender.js'
import { ownPool, ownSql, type MakeSql, type PgPoolClass, type SqlSettings } from './own-connections.js'
import { PgClient, type PgConnection, type PgPool } from './pg-client.js'
import { PGliteClient, type PGlite } from './pglite-client.js'
import type { PostgresSql } from './postgres-client.js'
import type { SocketPlace } from './quiet-sockets.js'
import { chosenOf } from './server-choice.js'
import { PoolOfOne } from './pool-of-one.js'
import type { SqlClient } from './sql-client.js'

interface Address {
  readonly host?: string | readonly string[] | undefined
  readonly port?: number | readonly number[] | undefined
  readonly database?: string | undefined
}

interface ExistingPool extends PgPool {
  readonly options: Address & { readonly connectionString?: string }
  /** Connects with the options of the pool. */
  readonly Client: new (options: object) => PgConnection
  readonly ending: boolean
  emit(event: 'connect', connection: PgConnection): unknown
}

/** A `sql` of `postgres`, with its options as the package has completed them. */
interface ExistingSql extends PostgresSql {
  readonly options: SqlSettings & {
    readonly host: readonly string[]
    readonly port: readonly number[]
    /** The path of a Unix socket; false without one. */
    readonly path: string | false
    readonly database: string
  }
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
 * a lender of clients. With the settings of a `Pool` or a `sql`, the box opens connections of its own, so it never
 * waits for connections of the application.
 * @throws InvalidArgumentError if it is of another kind, or can't be used; MissingPackageError if it is a `sql` and
 * `postgres` can't be imported
 */
export async function detectClient(client: unknown, schema: string, clock: Clock): Promise<SqlClient> {
  if ((typeof client === 'object' || typeof client === 'function') && client !== null) {
    const has = (...methods: string[]): boolean =>
      methods.every(name => typeof Reflect.get(client, name) === 'function')
    if (has('unsafe', 'begin', 'listen')) return besideSql(client as ExistingSql, schema, clock)
    if (isNeonHttp(client))
      throw unusable(`${NEON_HTTP}; give a Pool of @neondatabase/serverless, or the URL of the database`)
    if (has('unsafe'))
      throw unusable('the sql of a transaction or of one connection; give the sql that made it')
    if (has('exec', 'query', 'transaction', 'listen'))
      return overPGlite(client as ExistingPGlite, schema, clock)
    if (has('exec', 'query', 'rollback')) throw unusable('a transaction of a PGlite; give the PGlite')
    if (has('connect', 'query', 'on') && 'totalCount' in client)
      return besidePool(client as unknown as ExistingPool, schema, clock)
    if (has('connect', 'query', 'on') && 'processID' in client)
      return overClient(client as unknown as ExistingClient, schema, clock)
    if (has('connect', 'release') && !has('query')) return overLender(client as ClientLender, schema, clock)
  }
  throw unusable(shown(client))
}

function besidePool(pool: ExistingPool, schema: string, clock: Clock): SqlClient {
  if (pool.ending) throw unusable('a Pool that was ended')
  const { options } = pool
  const [, place] = /^\w+:\/\/(?:[^?]*@)?([^?]*)/.exec(options.connectionString ?? '') ?? []
  // The pool hides its password from copies of its options.
  class Client extends pool.Client {
    constructor() {
      super(pool.options)
    }
  }
  const prepare = (connection: PgConnection): unknown => pool.emit('connect', connection)
  const name = placeName(place ?? placeOf(options), schema)
  return ownPool(name, classOf(pool), { ...options, Client }, clock, STATEMENT_TIMEOUT, prepare)
}

/**
 * Returns the class of `pg` from which the class of a pool derives. The constructor of that class may take other
 * arguments.
 */
function classOf(pool: PgPool): PgPoolClass {
  let prototype = Object.getPrototypeOf(pool) as PgPool
  for (let next = prototype; 'connect' in next; next = Object.getPrototypeOf(next) as PgPool) prototype = next
  return prototype.constructor as PgPoolClass
}

function overLender(lender: ClientLender, schema: string, clock: Clock): SqlClient {
  const pool = new LenderPool(lender, clock)
  return new PgClient(placeName('', schema), pool, clock, () => pool.end())
}

function overClient(client: ExistingClient, schema: string, clock: Clock): SqlClient {
  const isConnected = client.processID !== null && !client._ending && client._queryable
  if (!isConnected) throw unusable('a Client that is not connected; connect it first')
  const status = client.getTransactionStatus?.() ?? 'I'
  if (status !== 'I') throw unusable('a Client that is inside a transaction')
  const pool = new PoolOfOne(client, clock)
  return new PgClient(placeName(placeOf(client), schema), pool, clock, () => pool.end())
}

async function besideSql({ options }: ExistingSql, schema: string, clock: Clock): Promise<SqlClient> {
  const postgres = await ifInstalled('postgres', import('postgres'))
  if (!postgres) throw missingPackage('a given sql of postgres needs its package', ['postgres'])
  const name = placeName(placeOf(options), schema)
  const { host, port, path, socket } = options
  const places: readonly SocketPlace[] = path
    ? [{ path }]
    : host.map((each, index) => ({ host: each, port: port[index]! }))
  const settings = {
    ...options,
    // The box itself chooses a server that accepts writes.
    target_session_attrs: null,
    onclose: undefined,
    onnotify: undefined,
    onparameter: undefined,
    parameters: {},
    shared: { retries: 0, typeArrayMap: {} },
  }
  const limit = Math.floor(STATEMENT_TIMEOUT / places.length)
  const clients = (socket ? places.slice(0, 1) : places).map(place =>
    ownSql(name, postgres.default as MakeSql, settings, place, clock, limit),
  )
  return chosenOf(name, clients)
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
