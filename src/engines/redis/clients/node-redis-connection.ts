import type { Attempt, ClientPackage, Connection, ConnectionListener, Reply } from './connection.js'
import { plain } from './reply.js'

type OnMessage = (text: string, channel: string) => void

/** What is used of a client of node-redis, the same in versions 5 and 6. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
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

/** What overrides the options of a client, so that it does nothing on its own. */
export const PASSIVE_OPTIONS = {
  disableOfflineQueue: true,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  pingInterval: 0,
  commandsQueueMaxLength: undefined,
  clientSideCache: undefined,
  emitInvalidate: undefined,
  commandOptions: undefined,
} as const

/** What overrides the options of its socket. */
export function obedientSocket({ signal, timeLimit }: Attempt): object {
  return {
    // The client knows its socket only when that is connected: one that is destroyed before would connect all the
    // same, and that connection could not be ended. Node destroys the socket at this signal.
    signal,
    connectTimeout: timeLimit,
    socketTimeout: undefined,
    keepAlive: true,
    keepAliveInitialDelay: 10_000,
    // The client is destroyed as soon as it reports an error. Refusing to reconnect would make it forget itself
    // half-way: what it registers of itself for metrics would stay.
    reconnectStrategy: () => 1,
  }
}

/** How each command is sent: version 6 would start a timer for each, and both would follow the caller's wishes. */
export const SEND_OPTIONS = {
  timeout: undefined,
  asap: undefined,
  abortSignal: undefined,
  // Maps and sets (37, 126) as lists, doubles (44) as text: what RESP2 says. Everything else in its plain form.
  typeMapping: { 37: Array, 126: Array, 44: String },
}

/** node-redis, by its `createClient`. Its connections speak RESP2, as those of ioredis do. */
export function nodeRedisPackage(createClient: CreateNodeRedisClient): ClientPackage {
  // It writes a class with all commands for each client whose options differ from those of the last one, which takes
  // tens of milliseconds. Duplicates share the class.
  const pattern = createClient(PASSIVE_OPTIONS)
  return (address, { username, password, database }) =>
    (listener, attempt) => {
      const socket = { ...address, ...obedientSocket(attempt) }
      const client = pattern.duplicate({ ...PASSIVE_OPTIONS, RESP: 2, username, password, database, socket })
      return connectNodeRedis(client, listener, attempt)
    }
}

/** Connects a client that was made with {@link PASSIVE_OPTIONS} and {@link obedientSocket}. */
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
    // Without the listener, the client would take a channel for subscribed until the reply, and a subscription that
    // comes before it would end with it.
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
