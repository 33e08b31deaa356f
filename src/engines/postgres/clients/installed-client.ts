import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import type Pg from 'pg'
import type postgres from 'postgres'
import type { Clock } from '../../../base/clock.js'
import { ifInstalled } from '../../../base/if-installed.js'
import { missingPackage } from '../../../base/missing-package.js'
import { InvalidArgumentError } from '../../../base/errors.js'
import type { PostgresTls } from '../postgres-tls.js'
import { portNumber, type PostgresAddress, type PostgresPlace } from '../postgres-url.js'
import { STATEMENT_TIMEOUT } from './answered.js'
import { ownPool, ownSql, type MakeSql, type PgPoolClass } from './own-connections.js'
import type { SocketPlace } from './quiet-sockets.js'
import { chosenOf } from './server-choice.js'
import type { SqlClient } from './sql-client.js'

/** One of the servers of an address. */
interface Server {
  readonly host: string
  readonly port: number
}

/**
 * Returns a client of the installed package; if both are installed, of `pg`.
 * @throws MissingPackageError that names them if neither is installed
 */
export async function installedClient(place: PostgresPlace, clock: Clock): Promise<SqlClient> {
  const pg = await ifInstalled('pg', import('pg'))
  if (pg !== undefined) return overPg(place, pg.default, clock)
  const postgres = await ifInstalled('postgres', import('postgres'))
  if (postgres !== undefined) return overPostgres(place, postgres.default, clock)
  throw missingPackage('PostgreSQL needs a client package', ['pg', 'postgres'])
}

/**
 * Returns a hash of everything that affects the connections to a place. Boxes with the same hash can share connections.
 * @throws InvalidArgumentError if a file for TLS can't be read
 */
export function connectionsOf(place: PostgresPlace): string {
  const { rootCertificate, certificate, key } = place.address.tls ?? {}
  const files = Object.entries({ sslrootcert: rootCertificate, sslcert: certificate, sslkey: key })
  const contents = files.map(([option, path]) => path !== undefined && contentOf(option, path))
  // Both packages read further settings from these variables.
  const environment = Object.entries(process.env).filter(([name]) => name.startsWith('PG'))
  const text = JSON.stringify([place, contents, environment])
  return createHash('sha256').update(text).digest('hex')
}

/** Returns a client of `pg`. */
export function overPg(place: PostgresPlace, { Pool }: typeof Pg, clock: Clock): SqlClient {
  const { user, password, database, applicationName, options, tls } = place.address
  return chosen(place, server => {
    const ssl = tls ? tlsOptions(tls, server.host) : false
    const ways = tls?.isOptional ? [ssl, false] : [ssl]
    return ways.map(way => {
      const settings = {
        ...server,
        user,
        password,
        database,
        application_name: applicationName ?? usualName(),
        ...(options !== undefined && { options }),
        ssl: way,
      }
      return ownPool(place.name, Pool as PgPoolClass, settings, clock, connectLimit(place.address))
    })
  })
}

/** Returns a client of `postgres`. */
export function overPostgres(place: PostgresPlace, make: typeof postgres, clock: Clock): SqlClient {
  const { user, password, database, applicationName, options, tls } = place.address
  return chosen(place, server => {
    const settings = {
      user,
      password,
      database,
      connection: { application_name: applicationName ?? usualName(), options },
      ssl: tls?.isOptional ? ('prefer' as const) : tls ? tlsOptions(tls, server.host) : false,
    }
    const limit = connectLimit(place.address)
    return [ownSql(place.name, make as MakeSql, settings, socketPlace(server), clock, limit)]
  })
}

/** @param make returns the clients of a server, in the order in which to try them */
function chosen({ name, address }: PostgresPlace, make: (server: Server) => readonly SqlClient[]): SqlClient {
  return chosenOf(name, serversOf(address).flatMap(make))
}

/** Returns the default name of the box's connections in pg_stat_activity. */
function usualName(): string {
  return process.env['PGAPPNAME'] || 'signalbox'
}

/** Returns the servers of an address, with the defaults of both packages. */
function serversOf({ servers }: PostgresAddress): readonly Server[] {
  const { PGHOST, PGPORT } = process.env
  return servers.map(({ host, port }) => ({
    host: host ?? (PGHOST || 'localhost'),
    port: port ?? (PGPORT ? portNumber(PGPORT, 'PGPORT') : 5432),
  }))
}

/** Maximum time to connect to one of the servers, in milliseconds, so that time is left for the next one. */
function connectLimit({ servers, connectTimeout = Infinity }: PostgresAddress): number {
  return Math.min(connectTimeout, Math.floor(STATEMENT_TIMEOUT / servers.length))
}

function socketPlace({ host, port }: Server): SocketPlace {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}

/** @param host the host that the certificate must be for, if that is verified */
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
