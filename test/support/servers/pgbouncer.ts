import { existsSync } from 'node:fs'
import pg from 'pg'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'
import type { PostgresServer } from './postgres.js'
import { unprivileged, unprivilegedFolder } from './unprivileged.js'

/** Debian's PgBouncer, which is outside of a user's PATH. */
const debian = '/usr/sbin/pgbouncer'

/** The unit for which a pooler assigns a connection of the server. */
type PoolMode = 'session' | 'transaction' | 'statement'

/** A real PgBouncer on a free port of 127.0.0.1 in front of a server. */
export class PgBouncer extends ServerProcess {
  /** URL of the server through the pooler. */
  readonly url: string

  constructor(port: number, folder: string, { address }: PostgresServer, mode: PoolMode, poolSize: number) {
    const lines = [
      '[databases]',
      `* = host=${address.host} port=${address.port} user=${address.user}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      `pool_mode = ${mode}`,
      `default_pool_size = ${poolSize}`,
      // Delay until a server that was down is tried again, in seconds.
      'server_login_retry = 0.1',
      // A connection keeps the compiled code of each test's schema, and checks a new schema against it.
      'server_lifetime = 2',
    ]
    super({
      program: existsSync(debian) ? debian : 'pgbouncer',
      argv: ['pgbouncer.ini'],
      folder,
      user: unprivileged,
      files: { 'pgbouncer.ini': `${lines.join('\n')}\n` },
      debianPackage: 'pgbouncer',
    })
    this.url = `postgres://${address.user}@127.0.0.1:${port}/${address.database}`
  }

  protected async answers(): Promise<void> {
    const client = new pg.Client(this.url)
    await client.connect()
    try {
      await client.query('select 1')
    } finally {
      await client.end()
    }
  }
}

/** Starts PgBouncer in front of a server. It has answered when the promise settles. */
export async function startPgBouncer(
  server: PostgresServer,
  mode: PoolMode = 'transaction',
  poolSize = 20,
): Promise<PgBouncer> {
  const pooler = new PgBouncer(await freePort(), unprivilegedFolder('pgbouncer'), server, mode, poolSize)
  await pooler.start()
  return pooler
}
