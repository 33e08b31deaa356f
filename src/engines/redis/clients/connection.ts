/** A reply of Redis: text, whole numbers, null, and lists of these. */
export type Reply = string | number | null | readonly Reply[]

/** The server answered a command with an error; `code` is its first word, like `NOSCRIPT`, `OOM` or `READONLY`. */
export class RedisReplyError extends Error {
  readonly code: string

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RedisReplyError'
    this.code = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR'
  }
}

/** Network address of a server. */
export interface NetworkAddress {
  readonly host: string
  readonly port: number
  readonly tls: boolean
}

/** Network address, or path of a Unix socket. */
export type Address = NetworkAddress | { readonly path: string }

/** Returns the host and port of a server that is named `host:port`. */
export function placeOf(name: string): { readonly host: string; readonly port: number } {
  const colon = name.lastIndexOf(':')
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) }
}

/** Credentials and database of a connection. */
export interface Login {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

/** Receives the events of a connection. */
export interface ConnectionListener {
  /** The connection was lost. Every command without an answer has been rejected, or will be at once. Called once. */
  lost(cause: unknown): void
  message(channel: string, text: string): void
}

/**
 * One connection to one server, made by a client package. It never reconnects after a loss.
 *
 * Both packages can reconnect, and follow Sentinels and clusters. But while one of them tries to reach a server that is
 * down, it keeps a finished process alive. So here the packages make single connections, and this library does the
 * rest, once for both.
 */
export interface Connection {
  /** Writes a command at once. Rejects with RedisReplyError for an error reply, or with another error after a loss. */
  send(args: readonly string[]): Promise<Reply>
  /** Subscribes to a channel; to a sharded one with SSUBSCRIBE. Rejects as {@link send} does. */
  subscribe(channel: string, sharded: boolean): Promise<void>
  unsubscribe(channel: string, sharded: boolean): Promise<void>
  /** Sets whether the connection keeps the process running, as `ref` and `unref` do. Default: true. */
  keepAlive(wanted: boolean): void
  /** Ends the connection at once. Commands without a reply reject. */
  destroy(): void
}

/** The limits of an attempt to connect. */
export interface Attempt {
  /** Time limit for reaching the server, in milliseconds. */
  readonly timeLimit: number
  /** Aborted when the connection is no longer needed. The attempt then ends at once. */
  readonly signal: AbortSignal
}

/** Makes a connection and logs in. Rejects with the error of the server or of the client package. */
export type Connect = (listener: ConnectionListener, attempt: Attempt) => Promise<Connection>

/** Makes connections with a client package. */
export type ClientPackage = (address: Address, login: Login) => Connect

/** How long a link waits, in milliseconds. */
export interface Timeouts {
  /** Time limit for a new connection. */
  readonly connect: number
  /** Time limit for the reply to a command. */
  readonly answer: number
  /** Interval of the pings over a connection that only listens. */
  readonly heartbeat: number
}

export const DEFAULT_TIMEOUTS: Timeouts = { connect: 5000, answer: 5000, heartbeat: 10_000 }
