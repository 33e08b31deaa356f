import { setTimeout } from 'node:timers/promises'
import type { FakeClock } from './fake-clock.js'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { RedisConnection, type RedisAddress, type RedisAnswer } from './redis-connection.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'

export interface RedisServerOptions {
  /** Lines of redis.conf, like `maxmemory 3mb`; they come after ours and win. */
  readonly config?: readonly string[]
  /** Whether it is a Sentinel. */
  readonly sentinel?: boolean
  /** Whether it serves TLS on its port instead of plain TCP. `config` has to name the certificate files. */
  readonly tls?: boolean
  /** A clock that replaces the server's real one. */
  readonly clock?: FakeClock
}

/** A real `redis-server` on a free port of 127.0.0.1, in a folder of its own, without persistence. */
export class RedisServer extends ServerProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  /** Without user or password: `redis://127.0.0.1:port`. */
  readonly url: string
  /** Its unix socket. */
  readonly socketPath: string
  /** Its folder; a test may put files into it. */
  readonly folder: string
  readonly #address: RedisAddress
  #connection: Promise<RedisConnection> | undefined

  constructor(
    port: number,
    folder: string,
    { config = [], sentinel = false, tls = false, clock }: RedisServerOptions,
  ) {
    const lines = [
      ...(tls ? ['port 0', `tls-port ${port}`] : [`port ${port}`]),
      'bind 127.0.0.1',
      `dir ${folder}`,
      'unixsocket redis.sock',
      'daemonize no',
      ...(sentinel ? [] : ['save ""', 'appendonly no', 'repl-diskless-sync-delay 0']),
      ...config,
    ]
    super({
      program: 'redis-server',
      // A Sentinel writes its state into its configuration file.
      argv: ['redis.conf', ...(sentinel ? ['--sentinel'] : [])],
      folder,
      environment: clock?.environment ?? {},
      files: { 'redis.conf': `${lines.join('\n')}\n` },
      debianPackage: 'redis-server',
    })
    this.port = port
    this.url = `${tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`
    this.folder = folder
    this.socketPath = `${folder}/redis.sock`
    this.#address = { port, tls }
  }

  /** Sends a command over a connection of the tests' own; rejects with the server's error. */
  async command(...args: readonly (string | number)[]): Promise<RedisAnswer> {
    let connection = await this.#connection?.catch(() => undefined)
    if (connection?.isOpen !== true)
      connection = await (this.#connection = RedisConnection.open(this.#address))
    return connection.command(...args)
  }

  /** Another connection of the tests' own, for its own AUTH, MULTI or SUBSCRIBE. */
  connection(): Promise<RedisConnection> {
    return RedisConnection.open(this.#address)
  }

  /**
   * Returns the number of calls of each command since the start or `CONFIG RESETSTAT`, by its name in small letters.
   */
  async calls(): Promise<Record<string, number>> {
    const text = String(await this.command('INFO', 'commandstats'))
    const found = text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)
    return Object.fromEntries([...found].map(([, name, calls]) => [name!, Number(calls)]))
  }

  /**
   * Settles when a replica has all writes so far. `WAIT` would cover the writes of its own connection only.
   */
  async copied(): Promise<void> {
    const behind = /^slave\d+:.*state=online,offset=(\d+).*^master_repl_offset:(\d+)/ms
    for (;;) {
      const [, replica, master] = behind.exec(String(await this.command('INFO', 'replication'))) ?? []
      if (replica !== undefined && Number(replica) >= Number(master)) return
      await setTimeout(20)
    }
  }

  protected async answers(): Promise<void> {
    const connection = await RedisConnection.open(this.#address)
    try {
      await connection.command('PING')
    } catch (error) {
      // A server that requires a password is up.
      if (!/^NOAUTH/.test((error as Error).message)) throw error
    } finally {
      connection.close()
    }
  }
}

/**
 * Starts a Redis server; it has answered when the promise settles.
 * @throws Error when `redis-server` is not installed
 */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = new RedisServer(await freePort(), reapedFolder('redis'), options)
  await server.start()
  return server
}

/** Starts several independent servers. */
export async function startRedisServers(
  count: number,
  options: RedisServerOptions = {},
): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, () => startRedis(options)))
}
