import type { Attempt, ClientPackage, Connection, ConnectionListener, Reply } from './connection.js'
import { plain } from './reply.js'

type OnMessage = (text: string, channel: string) => void

/** The part of a client of node-redis that the engine uses, the same in versions 5 and 6. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  destroy(): void
  duplicate(options: object): NodeRedisClient
  ref(): void
  unref(): void
  sendCommand(args: readonly string[], options?: object): Promise<unknown>
  subscribe(channel: string, listener: OnMessage): Promise<unknown>
  unsubscribe(channel: string, listener: OnMessage): Promise<unknown>
  sSubscribe(channel: string, listener: OnMessage): Promise<unknown>
  sUnsubscribe(channel: string, listener: OnMessage): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
}

/** `createClient`, as the package exports it. */
export type CreateNodeRedisClient = (options: object) => NodeRedisClient

/** Overrides options of a client, to turn off its automatic features. It speaks RESP2, as clients of ioredis do. */
export const PASSIVE_OPTIONS = {
  RESP: 2,
  disableOfflineQueue: true,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  pingInterval: 0,
  commandsQueueMaxLength: undefined,
  clientSideCache: undefined,
  emitInvalidate: undefined,
  commandOptions: undefined,
} as const

/** Overrides options of its socket. */
export function passiveSocket({ signal, timeLimit }: Attempt): object {
  return {
    // The client knows its socket only once it is connected. A client that is destroyed before would still connect, and
    // nothing could end that connection. Node destroys the socket at this signal.
    signal,
    connectTimeout: timeLimit,
    socketTimeout: undefined,
    keepAlive: true,
    keepAliveInitialDelay: 10_000,
    // The client is destroyed as soon as it reports an error. If it could not reconnect, it would clean up only in
    // part: its registration for metrics would stay.
    reconnectStrategy: () => 1,
  }
}

/**
 * Options of each command. Without them, version 6 would start a timer for each command, and both versions would use
 * the options of the client's owner.
 */
export const SEND_OPTIONS = {
  timeout: undefined,
  asap: undefined,
  abortSignal: undefined,
  typeMapping: {},
}

/** Makes connections with `createClient` of node-redis. */
export function nodeRedisPackage(createClient: CreateNodeRedisClient): ClientPackage {
  // For each client whose options differ from the last one's, node-redis creates a class with all commands, which takes
  // tens of milliseconds. Duplicates share the class.
  const pattern = createClient(PASSIVE_OPTIONS)
  return (address, { username, password, database }) =>
    (listener, attempt) => {
      const socket = { ...address, ...passiveSocket(attempt) }
      const client = pattern.duplicate({ ...PASSIVE_OPTIONS, username, password, database, socket })
      return connectNodeRedis(client, listener, attempt)
    }
}

/** Connects a client that was made with {@link PASSIVE_OPTIONS} and {@link passiveSocket}. */
export function connectNodeRedis(
  client: NodeRedisClient,
  listener: ConnectionListener,
  { signal }: Attempt,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let isReady = false
    let isOver = false
    const end = (cause: unknown): void => {
      if (isOver) return
      isOver = true
      if (client.isOpen) client.destroy()
      if (isReady) listener.lost(cause)
      else reject(cause)
    }
    client.on('error', end)
    client.on('end', () => end(new Error('the connection was closed')))
    client.on('sharded-channel-moved', () => end(new Error('the slot of a channel has moved')))
    signal.addEventListener('abort', () => end(signal.reason))
    client.on('ready', () => {
      isReady = true
      resolve(new NodeRedisConnection(client, listener))
    })
    client.connect().catch(end)
  })
}

class NodeRedisConnection implements Connection {
  readonly #client: NodeRedisClient
  readonly #message: OnMessage

  constructor(client: NodeRedisClient, listener: ConnectionListener) {
    this.#client = client
    this.#message = (text, channel) => listener.message(channel, text)
  }

  send(args: readonly string[]): Promise<Reply> {
    return plain(this.#client.sendCommand(args, SEND_OPTIONS))
  }

  async subscribe(channel: string, sharded: boolean): Promise<void> {
    const subscribe = sharded ? 'sSubscribe' : 'subscribe'
    await plain(this.#client[subscribe](channel, this.#message))
  }

  async unsubscribe(channel: string, sharded: boolean): Promise<void> {
    // Without the listener, the client would count a channel as subscribed until the reply, and a new subscription
    // before the reply would end with it.
    await plain(this.#client[sharded ? 'sUnsubscribe' : 'unsubscribe'](channel, this.#message))
  }

  keepAlive(wanted: boolean): void {
    if (wanted) this.#client.ref()
    else this.#client.unref()
  }

  destroy(): void {
    if (this.#client.isOpen) this.#client.destroy()
  }
}
