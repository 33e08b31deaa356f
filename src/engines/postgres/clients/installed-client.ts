import { readFileSync } from 'node:fs'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import type Pg from 'pg'
import type postgres from 'postgres'
import type { Clock } from '../../../clock.js'
import { ifInstalled } from '../../../engine/kit/if-installed.js'
import { missingPackage } from '../../../engine/kit/missing-package.js'
import { InvalidArgumentError } from '../../../errors.js'
import type { PostgresTls } from '../postgres-tls.js'
import { portNumber, type PostgresAddress, type PostgresPlace } from '../postgres-url.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { PgClient } from './pg-client.js'
import { PostgresClient } from './postgres-client.js'
import { QuietSockets, type SocketPlace } from './quiet-sockets.js'
import { ServerChoice } from './server-choice.js'
import type { SqlClient } from './sql-client.js'

/** One of the servers of an address. */
interface Server {
  readonly host: string
  readonly port: number
}

/** For statements, renewals, limits, messages, and what waits for rows that other transactions hold. */
const CONNECTIONS = 5
/**
 * Those that stay when they are idle: two for statements, and one for messages. A far box makes a new one in several
 * round trips, and within that time a waiter can lose its turn.
 */
const KEPT_CONNECTIONS = 3
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
  throw missingPackage('PostgreSQL needs a client package', ['pg', 'postgres'])
}

/** A client over `pg`. */
export function overPg(place: PostgresPlace, { Pool }: typeof Pg, clock: Clock): SqlClient {
  const { user, password, database, applicationName, options, tls } = place.address
  return chosen(place, server => {
    const ssl = tls ? tlsOptions(tls, server.host) : false
    const ways = tls?.isOptional ? [ssl, false] : [ssl]
    return ways.map(way => {
      const pool = new Pool({
        ...server,
        user,
        password,
        database,
        application_name: applicationName ?? usualName(),
        ...(options !== undefined && { options }),
        ssl: way,
        min: KEPT_CONNECTIONS,
        max: CONNECTIONS,
        connectionTimeoutMillis: connectLimit(place.address),
        allowExitOnIdle: true,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE,
      })
      // An idle connection that breaks is made again.
      pool.on('error', () => undefined)
      return new PgClient(place.name, pool, clock, () => pool.end())
    })
  })
}

/** A client over `postgres`. */
export function overPostgres(place: PostgresPlace, make: typeof postgres, clock: Clock): SqlClient {
  const { user, password, database, applicationName, options, tls } = place.address
  return chosen(place, server => {
    const sockets = new QuietSockets(socketPlace(server), connectLimit(place.address), clock)
    const settings = {
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
      ...(database !== undefined && { database }),
      connection: {
        application_name: applicationName ?? usualName(),
        ...(options !== undefined && { options }),
      },
      ssl: tls?.isOptional ? ('prefer' as const) : tls ? tlsOptions(tls, server.host) : false,
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
    return [new PostgresClient(place.name, () => make(settings), clock)]
  })
}

/** The client of the one server, or one that chooses among several. @param make clients of a server, to be tried in turn */
function chosen({ name, address }: PostgresPlace, make: (server: Server) => readonly SqlClient[]): SqlClient {
  const clients = serversOf(address).flatMap(make)
  return clients.length === 1 ? clients[0]! : new ServerChoice(name, clients)
}

/** By which name people find the connections of boxes. */
function usualName(): string {
  return process.env['PGAPPNAME'] || 'signalbox'
}

/** The servers of an address, each as both packages would find it. */
function serversOf({ servers }: PostgresAddress): readonly Server[] {
  const { PGHOST, PGPORT } = process.env
  return servers.map(({ host, port }) => ({
    host: host ?? (PGHOST || 'localhost'),
    port: port ?? (PGPORT ? portNumber(PGPORT, 'PGPORT') : 5432),
  }))
}

/** How long a connection to one of the servers may take, so that there is time for the next one: milliseconds. */
function connectLimit({ servers, connectTimeout = Infinity }: PostgresAddress): number {
  return Math.min(connectTimeout, Math.floor(STATEMENT_TIMEOUT / servers.length))
}

function socketPlace({ host, port }: Server): SocketPlace {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}

/** @param host of which the certificate has to be, where that is checked */
function tlsOptions(tls: PostgresTls, host: string): ConnectionOptions {
  const { checks, rootCertificate, certificate, key } = tls
  return {
    rejectUnauthorized: checks !== 'nothing',
    checkServerIdentity: (_, peer) =>
      checks === 'certificate and host' ? checkServerIdentity(host, peer) : undefined,
    ...(rootCertificate !== undefined && { ca: contentOf('sslrootcert', rootCertificate) }),
    ...(certificate !== undefined && { cert: contentOf('sslcert', certificate) }),
    ...(key !== undefined && { key: contentOf('sslkey', key) }),
  }
}

function contentOf(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new InvalidArgumentError(`${option} takes the path of a file: ${(error as Error).message}`)
  }
}
