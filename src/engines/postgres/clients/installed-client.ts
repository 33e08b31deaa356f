import type Pg from 'pg'
import type { Clock } from '../../../clock.js'
import { UnavailableError } from '../../../errors.js'
import type { PostgresPlace } from '../postgres-url.js'
import { PgClient, type PgPool } from './pg-client.js'
import { STATEMENT_TIMEOUT, type SqlClient } from './sql-client.js'

/** A connection for statements, one for messages, and one to spare. */
const CONNECTIONS = 3

/**
 * A client of the package that is installed.
 * @throws UnavailableError when there is none
 */
export async function installedClient({ name, url }: PostgresPlace, clock: Clock): Promise<SqlClient> {
  const { Pool } = await pgPackage()
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: STATEMENT_TIMEOUT,
    allowExitOnIdle: true,
    keepAlive: true,
  })
  // An idle connection that breaks is made again.
  pool.on('error', () => undefined)
  return new PgClient(name, pool as unknown as PgPool, true, clock)
}

async function pgPackage(): Promise<typeof Pg> {
  try {
    return (await import('pg')).default
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
    throw new UnavailableError(
      missing
        ? 'PostgreSQL needs a client package: npm install pg'
        : 'The client package pg that is installed cannot be loaded',
      { cause: error },
    )
  }
}
