import type { Clock } from '../../../base/clock.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { PgClient, type PgConnection, type PgPool } from './pg-client.js'
import { PostgresClient, type PostgresSql } from './postgres-client.js'
import { QuietSockets, type SocketPlace } from './quiet-sockets.js'

/**
 * Maximum number of connections: for statements, renewals, limits, messages, and statements that wait for locked rows.
 */
const CONNECTIONS = 5
/**
 * Number of connections that are kept when idle: two for statements, and one for messages. Over a long distance,
 * connecting takes several round trips, in which a waiter can lose its turn.
 */
const KEPT_CONNECTIONS = 3
/** Time after which a further idle connection is closed, in milliseconds. */
const KEPT_FOR = 60_000
/** Time after which an idle connection sends a keep-alive, in milliseconds. */
const KEEP_ALIVE = 10_000

/** The class of a pool of `pg`, of any package that derives from it. */
export type PgPoolClass = new (options: object) => PgPool & {
  on(event: 'error', listener: () => void): unknown
  on(event: 'connect', listener: (connection: PgConnection) => void): unknown
  end(): Promise<void>
}

/**
 * Returns a client over a pool of the box's own.
 * @param options where and how to connect @param limit maximum time to connect, in milliseconds
 * @param prepare is called with each new connection
 */
export function ownPool(
  name: string,
  Pool: PgPoolClass,
  options: object,
  clock: Clock,
  limit = STATEMENT_TIMEOUT,
  prepare?: (connection: PgConnection) => void,
): PgClient {
  const pool = new Pool({
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE,
    ...options,
    min: KEPT_CONNECTIONS,
    max: CONNECTIONS,
    idleTimeoutMillis: KEPT_FOR,
    connectionTimeoutMillis: limit,
    allowExitOnIdle: true,
  })
  // The pool replaces an idle connection that breaks. Over one that is in use, the statement fails.
  pool.on('error', () => undefined)
  pool.on('connect', connection => {
    connection.on('error', () => undefined)
    prepare?.(connection)
  })
  return new PgClient(name, pool, clock, () => pool.end())
}

/** The function of the package `postgres`. */
export type MakeSql = (settings: object) => PostgresSql

/** Settings of the package `postgres`. */
export interface SqlSettings {
  /** Returns a socket that is connected, or is connecting. The package's types lack it. */
  readonly socket?: (() => unknown) | undefined
  readonly [option: string]: unknown
}

/**
 * Returns a client over connections of the box's own.
 * @param settings how to connect to the place @param limit maximum time to connect, in milliseconds
 */
export function ownSql(
  name: string,
  make: MakeSql,
  settings: SqlSettings,
  place: SocketPlace,
  clock: Clock,
  limit = STATEMENT_TIMEOUT,
): PostgresClient {
  const sockets = new QuietSockets(place, limit, clock)
  const all = {
    ...settings,
    socket: settings.socket ?? (() => sockets.connect()),
    // The connection for messages belongs to another pool of the package.
    max: CONNECTIONS - 1,
    fetch_types: false,
    keep_alive: KEEP_ALIVE / 1000,
    // The timers of the package would keep the process alive.
    connect_timeout: 0,
    max_lifetime: 0,
    backoff: false,
    onnotice: () => undefined,
  }
  return new PostgresClient(name, more => make({ ...all, ...more }), clock)
}
