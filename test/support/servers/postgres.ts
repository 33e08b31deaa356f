import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { postgresqlFolders } from '../../../scripts/postgresql.mjs'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'

/** It refuses to run as root. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** A real PostgreSQL server on a free port of 127.0.0.1, in a folder of its own, as an unprivileged user. */
export class PostgresServer extends ServerProcess {
  /** For `pg`: host, port, user and database. */
  readonly address: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  /** The same as text. */
  readonly url: string

  constructor(port: number, folder: string) {
    const data = join(folder, 'data')
    const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`]
    super({
      program: programPath('postgres'),
      argv: ['-D', data, ...settings.flatMap(setting => ['-c', setting])],
      folder,
      user: unprivileged,
      files: {},
      debianPackage: 'postgresql',
    })
    this.address = { host: '127.0.0.1', port, user: 'tester', database: 'postgres' }
    this.url = `postgres://tester@127.0.0.1:${port}/postgres`
    initialise(data, folder)
  }

  override async restart(): Promise<void> {
    await this.kill()
    while (true) {
      try {
        await this.start()
        return
      } catch (error) {
        // Processes of its own outlive it for a moment, and it does not start beside them.
        if (!/still in use/.test((error as Error).message)) throw error
      }
    }
  }

  /** A pool of connections, which the caller ends. */
  pool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ ...this.address, max: 8, ...options })
    // An idle connection that breaks is made again.
    pool.on('error', () => undefined)
    return pool
  }

  protected async answers(): Promise<void> {
    const client = new pg.Client(this.address)
    await client.connect()
    await client.query('select 1')
    await client.end()
  }
}

/** Starts one; it has answered when the promise settles. */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = reapedFolder('postgres')
  if (unprivileged) {
    // Its user has to get through the folder above, which is for root alone else.
    chmodSync(dirname(folder), 0o711)
    chownSync(folder, unprivileged.uid, unprivileged.gid)
  }
  const server = new PostgresServer(await freePort(), folder)
  await server.start()
  return server
}

function programPath(program: string): string {
  const paths = postgresqlFolders().map(folder => join(folder, program))
  return paths.find(path => existsSync(path)) ?? program
}

function initialise(data: string, cwd: string): void {
  const argv = ['-D', data, '-U', 'tester', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
  const { status, error, stderr } = spawnSync(programPath('initdb'), argv, {
    cwd,
    encoding: 'utf8',
    ...unprivileged,
  })
  if (error) throw new Error(`initdb can't be started: ${error.message}`, { cause: error })
  if (status !== 0) throw new Error(`initdb failed:\n${stderr}`)
}
