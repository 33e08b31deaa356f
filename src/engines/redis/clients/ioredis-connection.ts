import type { Socket } from 'node:net'
import {
  RedisReplyError,
  type Attempt,
  type ClientPackage,
  type Connection,
  type ConnectionListener,
  type Login,
  type Reply,
} from './connection.js'
import { plain } from './reply.js'
import { runtimeTimers } from '../../../base/runtime-timers.js'

/** The part of a client of ioredis that the engine uses, the same in versions 5 and 6. */
export interface IoredisClient {
  readonly status: string
  readonly stream: Socket | undefined
  connect(): Promise<void>
  disconnect(): void
  call(name: string, ...args: string[]): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
}

/** The class of such clients, as the package exports it. */
export type IoredisClass = new (options: object) => IoredisClient

/**
 * Turns off automatic features of clients: no queue, no repeated commands, no connection after the first one. They speak
 * RESP2, in which all servers and both versions reply alike.
 */
export const PASSIVE_OPTIONS = {
  protocol: 2,
  lazyConnect: true,
  retryStrategy: null,
  reconnectOnError: null,
  sentinelRetryStrategy: null,
  enableReadyCheck: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  disableClientInfo: true,
  keyPrefix: '',
  monitor: false,
  keepAlive: 10_000,
  noDelay: true,
}

/** Makes connections with the class `Redis` of ioredis. */
export function ioredisPackage(Redis: IoredisClass): ClientPackage {
  return (address, login) => async (listener, attempt) => {
    const place = 'path' in address ? address : { ...address, tls: address.tls ? {} : undefined }
    const options = { ...PASSIVE_OPTIONS, ...place, connectTimeout: attempt.timeLimit }
    const connection = await connectIoredis(new Redis(options), listener, attempt)
    await logIn(connection, login)
    return connection
  }
}

/** Logs in. Rejects when the password is wrong or the database unknown; ioredis itself would continue. */
async function logIn(connection: Connection, { username, password, database }: Login): Promise<void> {
  const steps: string[][] = []
  if (password !== undefined)
    steps.push(username === undefined ? ['AUTH', password] : ['AUTH', username, password])
  if (database !== 0) steps.push(['SELECT', String(database)])
  await Promise.all(steps.map(step => connection.send(step)))
}

/** Connects a client that was made with {@link PASSIVE_OPTIONS}. */
export async function connectIoredis(
  client: IoredisClient,
  listener: ConnectionListener,
  { signal }: Attempt,
): Promise<Connection> {
  let failure: unknown
  let isReady = false
  client.on('error', (error: unknown) => {
    failure ??= error
    // Once connected, it reports only errors after which it can't continue.
    if (isReady) end(client)
  })
  client.on('end', () => {
    if (isReady) listener.lost(failure ?? new Error('the connection was closed'))
  })
  signal.addEventListener('abort', () => end(client))
  try {
    await client.connect()
  } catch (error) {
    throw failure ?? error
  }
  isReady = true
  return new IoredisConnection(client, listener)
}

/** Ends a client at once. Its own `disconnect` would wait for the other end to close the connection, too. */
function end(client: IoredisClient): void {
  // A client that has ended would set a timer for its former connection, which keeps the process alive.
  if (client.status === 'end') return
  client.disconnect()
  client.stream?.destroy()
}

class IoredisConnection implements Connection {
  readonly #client: IoredisClient
  /** Rejects sharded subscriptions that are under way. Version 5 never settles one whose channel is at another node. */
  readonly #entering = new Set<(error: Error) => void>()
  #isCorked = false

  constructor(client: IoredisClient, listener: ConnectionListener) {
    this.#client = client
    const message = (channel: unknown, text: unknown): void =>
      listener.message(channel as string, text as string)
    client.on('message', message)
    client.on('smessage', message)
    client.on('moved', () => {
      // The server has ended a subscription, because its slot has moved. A new connection finds out which ones are
      // left.
      if (this.#entering.size === 0) return end(client)
      for (const reject of this.#entering) reject(new RedisReplyError('MOVED'))
    })
  }

  send(args: readonly string[]): Promise<Reply> {
    return plain(this.#write(args))
  }

  async subscribe(channel: string, sharded: boolean): Promise<void> {
    let moved: ((error: Error) => void) | undefined
    const elsewhere = new Promise<never>((_, reject) => {
      moved = reject
      this.#entering.add(reject)
    })
    try {
      await Promise.race([this.send([sharded ? 'ssubscribe' : 'subscribe', channel]), elsewhere])
    } finally {
      this.#entering.delete(moved!)
    }
  }

  async unsubscribe(channel: string, sharded: boolean): Promise<void> {
    await this.send([sharded ? 'sunsubscribe' : 'unsubscribe', channel])
  }

  keepAlive(wanted: boolean): void {
    if (wanted) this.#client.stream?.ref()
    else this.#client.stream?.unref()
  }

  destroy(): void {
    end(this.#client)
  }

  #write(args: readonly string[]): Promise<unknown> {
    // Commands of one tick are sent in one write to the socket.
    if (!this.#isCorked) {
      this.#isCorked = true
      const { stream } = this.#client
      stream?.cork()
      runtimeTimers.nextTick(() => {
        this.#isCorked = false
        stream?.uncork()
      })
    }
    const [name, ...rest] = args
    return this.#client.call(name!, ...rest)
  }
}
