import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { postgresqlFolders } from '../../../scripts/postgresql.mjs'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'
import type { FakeClock } from './fake-clock.js'
import { unprivileged, unprivilegedFolder } from './unprivileged.js'
import { until } from './until.js'

export interface PostgresOptions {
  /** Settings by name, as postgresql.conf takes them. */
  readonly settings?: Readonly<Record<string, string>>
  /** A clock that replaces the server's real one. */
  readonly clock?: FakeClock
  /** A command of root that lets the server see a file system. */
  readonly enter?: readonly string[]
}

const host = '127.0.0.1'
const user = 'tester'

/** A real PostgreSQL server on a free port of 127.0.0.1, in a folder of its own, as an unprivileged user. */
export class PostgresServer extends ServerProcess {
  /** For `pg`: host, port, user and database. */
  readonly address: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  /** The same as a URL. */
  readonly url: string

  /** @param folder has the folder `data`, which is initialised. */
  constructor(port: number, folder: string, { settings = {}, clock, enter }: PostgresOptions) {
    const all = {
      port: String(port),
      listen_addresses: host,
      unix_socket_directories: folder,
      // The data of a killed server survives without it, because the machine goes on.
      fsync: 'off',
      ...settings,
    }
    const argv = [
      '-D',
      join(folder, 'data'),
      ...Object.entries(all).flatMap(entry => ['-c', entry.join('=')]),
    ]
    const [program = '', ...rest] = [...entered(enter), programPath('postgres'), ...argv]
    super({
      program,
      argv: rest,
      folder,
      user: enter ? undefined : unprivileged,
      environment: clock?.environment ?? {},
      files: {},
      debianPackage: 'postgresql',
    })
    this.address = { host, port, user, database: 'postgres' }
    this.url = `postgres://${user}@${host}:${port}/postgres`
  }

  override async start(): Promise<void> {
    while (true) {
      try {
        await super.start()
        return
      } catch (error) {
        // Processes of a killed server outlive it for a moment, and it does not start while they run.
        if (!/still in use/.test((error as Error).message)) throw error
      }
    }
  }

  /** Ends it and all its processes at once (SIGKILL), as a crash would. */
  override async kill(): Promise<void> {
    if (!this.isRunning) return
    // A running server would treat the end of one of them as a crash, and recover.
    this.pause()
    for (const child of childrenOf(this.pid)) kill(child)
    await super.kill()
  }

  /** Executes statements on a connection of its own, and returns the rows of the last one. */
  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    await using client = await this.client()
    const results: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text)
    return [results].flat().at(-1)!.rows
  }

  /** Opens a connection, which the caller disposes of. */
  async client(options: pg.ClientConfig = {}): Promise<pg.Client & AsyncDisposable> {
    const client = new pg.Client({ ...this.address, ...options })
    // The connection ends with the server. The statement under way fails as well.
    client.on('error', () => undefined)
    await client.connect()
    return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
  }

  /** A pool of connections, which the caller ends or disposes of. */
  pool(options: pg.PoolConfig = {}): pg.Pool & AsyncDisposable {
    const pool = new pg.Pool({ ...this.address, max: 8, ...options })
    // The pool replaces an idle connection that breaks.
    pool.on('error', () => undefined)
    return Object.assign(pool, { [Symbol.asyncDispose]: () => pool.end() })
  }

  /** Settles when the standby has all writes so far. */
  async copied(): Promise<void> {
    const [now] = await this.query<{ lsn: string }>('select pg_current_wal_insert_lsn() as lsn')
    const behind = `select from pg_stat_replication where replay_lsn >= '${now!.lsn}'`
    await until(async () => (await this.query(behind)).length > 0)
  }

  /**
   * Stops the server's WAL writer. From then on, commits that do not wait for the disk are only in the server's memory,
   * and end with it. A commit that waits for the disk also writes all before it.
   */
  async stopWriter(): Promise<void> {
    const writers = `select pid from pg_stat_activity where backend_type = 'walwriter'`
    let writer: { pid: number } | undefined
    // The server accepts statements before its writer has begun.
    await until(async () => {
      ;[writer] = await this.query<{ pid: number }>(writers)
      return writer !== undefined
    })
    process.kill(writer!.pid, 'SIGSTOP')
  }

  /** Promotes a standby. It accepts writes when the promise settles. */
  async promote(): Promise<void> {
    await this.query('select pg_promote()')
  }

  protected async answers(): Promise<void> {
    await this.query('select 1')
  }
}

/** Starts a server. It has answered when the promise settles. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = unprivilegedFolder('postgres')
  await run('cp', ['-r', await (template ??= initialised()), join(folder, 'data')], folder)
  return startIn(folder, options)
}

/**
 * Starts a standby. It has all data of the primary when the promise settles.
 * @param port port of the primary, or of a network in front of it
 */
export async function startStandby(port: number, options: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = unprivilegedFolder('postgres')
  const from = ['-h', host, '-p', String(port), '-U', user]
  const how = ['--write-recovery-conf', '--checkpoint=fast', '--no-sync']
  await run(programPath('pg_basebackup'), ['-D', join(folder, 'data'), ...from, ...how], folder)
  return startIn(folder, options)
}

async function startIn(folder: string, options: PostgresOptions): Promise<PostgresServer> {
  const server = new PostgresServer(await freePort(), folder, options)
  await server.start()
  return server
}

/** The path of a program in the folder that `POSTGRESQL_PROGRAMS` names, or in that of an installed version. */
function programPath(program: string): string {
  const { POSTGRESQL_PROGRAMS: named } = process.env
  const folders = named === undefined ? postgresqlFolders() : [named]
  const paths = folders.map(folder => join(folder, program))
  return paths.find(path => existsSync(path)) ?? program
}

/** A data folder that each server of this process copies, because a copy is much faster than initialisation. */
let template: Promise<string> | undefined

async function initialised(): Promise<string> {
  const folder = unprivilegedFolder('postgres')
  const data = join(folder, 'data')
  const how = ['--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
  await run(programPath('initdb'), ['-D', data, '-U', user, ...how], folder)
  return data
}

/** Runs a program as the server's user. @throws Error with its output when it fails */
async function run(program: string, argv: readonly string[], cwd: string): Promise<void> {
  await promisify(execFile)(program, argv, { cwd, ...unprivileged })
}

/** Completes the command: it enters as root, and then becomes the server's user, who may not enter. */
function entered(enter: readonly string[] | undefined): readonly string[] {
  return enter && unprivileged
    ? [...enter, `--setuid=${unprivileged.uid}`, `--setgid=${unprivileged.gid}`]
    : (enter ?? [])
}

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  // On other systems, they end by themselves, a moment later.
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
