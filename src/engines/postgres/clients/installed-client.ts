import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type Pg from 'pg'
import type postgres from 'postgres'
import type { Clock } from '../../../clock.js'
import { ifInstalled } from '../../../engine/kit/if-installed.js'
import { InvalidArgumentError, MissingPackageError } from '../../../errors.js'
import type { PostgresAddress, PostgresPlace, PostgresTls } from '../postgres-url.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { PgClient, type PgPool } from './pg-client.js'
import { PostgresClient } from './postgres-client.js'
import { QuietSockets, type SocketPlace } from './quiet-sockets.js'
import type { SqlClient } from './sql-client.js'

/** A connection for statements, one for messages, and one to spare. */
const CONNECTIONS = 3
/** An idle connection is tried after so many milliseconds. */
const KEEP_ALIVE = 10_000

/**
 * A client of the package that is installed. Where both are, it is `pg`.
 * @throws MissingPackageError that names them when neither is
 */
export async function installedClient(place: PostgresPlace, clock: Clock): Promise<SqlClient> {
  const pg = await ifInstalled(import('pg'), 'PostgreSQL')
  if (pg !== undefined) return overPg(place, pg.default, clock)
  const postgres = await ifInstalled(import('postgres'), 'PostgreSQL')
  if (postgres !== undefined) return overPostgres(place, postgres.default, clock)
  throw new MissingPackageError('PostgreSQL needs a client package: npm install pg (or postgres)')
}

/** A client over `pg`. */
export function overPg({ name, address }: PostgresPlace, { Pool }: typeof Pg, clock: Clock): SqlClient {
  const { host, port, user, password, database, applicationName, tls } = address
  const pool = new Pool({
    host,
    port,
    user,
    password,
    database,
    application_name: applicationName ?? usualName(),
    ssl: tls && tlsOptions(tls),
    max: CONNECTIONS,
    connectionTimeoutMillis: STATEMENT_TIMEOUT,
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE,
  })
  // An idle connection that breaks is made again.
  pool.on('error', () => undefined)
  return new PgClient(name, pool as unknown as PgPool, clock, () => pool.end())
}

/** A client over `postgres`. */
export function overPostgres(
  { name, address }: PostgresPlace,
  make: typeof postgres,
  clock: Clock,
): SqlClient {
  const { user, password, database, applicationName, tls } = address
  const place = socketPlace(address)
  const sockets = new QuietSockets(place, clock)
  const options = {
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { database }),
    connection: { application_name: applicationName ?? usualName() },
    ssl: tls ? { ...tlsOptions(tls), ...namesOf(place) } : false,
    max: CONNECTIONS,
    fetch_types: false,
    keep_alive: KEEP_ALIVE / 1000,
    // Its timers would keep the process alive.
    connect_timeout: 0,
    max_lifetime: 0,
    backoff: false,
    onnotice: () => undefined,
    // The types do not know it.
    socket: () => sockets.connect(),
  }
  return new PostgresClient(name, () => make(options), clock)
}

/** By which name people find the connections of boxes. */
function usualName(): string {
  return process.env['PGAPPNAME'] ?? 'signalbox'
}

/** The same as the package would find. */
function socketPlace({ host = process.env['PGHOST'] ?? 'localhost', port }: PostgresAddress): SocketPlace {
  const number = port ?? Number(process.env['PGPORT'] ?? 5432)
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${number}` } : { host, port: number }
}

function tlsOptions({ checks, rootCertificate, certificate, key }: PostgresTls): ConnectionOptions {
  return {
    rejectUnauthorized: checks !== 'nothing',
    ...(checks !== 'certificate and host' && { checkServerIdentity: () => undefined }),
    ...(rootCertificate !== undefined && { ca: contentOf('sslrootcert', rootCertificate) }),
    ...(certificate !== undefined && { cert: contentOf('sslcert', certificate) }),
    ...(key !== undefined && { key: contentOf('sslkey', key) }),
  }
}

/** Whom the certificate of the server has to be for. */
function namesOf(place: SocketPlace): ConnectionOptions {
  if (!('host' in place)) return {}
  const { host } = place
  return isIP(host) === 0 ? { host, servername: host } : { host }
}

function contentOf(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new InvalidArgumentError(`${option} takes the path of a file: ${(error as Error).message}`)
  }
}
