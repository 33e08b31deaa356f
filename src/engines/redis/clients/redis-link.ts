import type { CommandLine, Reply } from './command-line.js'

/** The answer to a command, and the way that it went. */
export interface Answered {
  readonly reply: Reply
  readonly line: CommandLine
  /** The line's when the command was sent: it went over the connection that the line has still, if it has the same now. */
  readonly epoch: number
}

/**
 * What the Redis engine needs of a client package: commands in order of sending, and messages of channels. One adapter a
 * package makes ioredis and node-redis look alike, standalone, behind Sentinel and on Cluster.
 */
export interface RedisLink {
  /** For messages: the address without passwords. */
  readonly name: string
  /** Whether keys live on several masters by hash slot; then every command goes to the master of its `route`. */
  readonly cluster: boolean
  /**
   * How often a connection was made anew. Where it has changed between sending and the answer, the client package may
   * have sent the command twice.
   */
  readonly epoch: number
  /**
   * Connects, if it isn't connected.
   * @throws UnavailableError when no server answers in time, or it refuses (wrong password, unknown database).
   */
  connect(): Promise<void>
  /**
   * Sends a command. Commands with the same route that are sent within one tick arrive in that order.
   * @param route a key whose slot decides which master gets the command on Cluster; ignored elsewhere.
   * Rejects with RedisReplyError when the server answered with an error, with UnavailableError when the command was
   * certainly not sent, and with IndeterminateError when it may have been carried out. It always settles: an answer that
   * does not come within the time-out of the link rejects with IndeterminateError.
   */
  command(route: string, args: readonly string[]): Promise<Reply>
  /** Sends a command as {@link command} does, and tells which way it went. */
  call(route: string, args: readonly string[]): Promise<Answered>
  /**
   * The masters, one function each that sends a command to it: for SCAN, which looks at one server only. Rejects as
   * {@link command} does.
   */
  masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]>
  /**
   * Hears a channel from when the promise settles until {@link unsubscribe}, over breaks of the connection, too. The
   * subscription connection is opened by the first call. On Cluster the channel is a sharded one (`SSUBSCRIBE`).
   */
  subscribe(channel: string): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Ends its own connections; those of a client that was given stay with who gave it. Never throws. */
  close(): Promise<void>
}

/** What a link tells unasked. */
export interface LinkListener {
  /** A message came on a subscribed channel. */
  message(channel: string, text: string): void
  /** Messages may have been missed: the subscription connection was lost and is subscribed anew. */
  resubscribed(): void
}

/** The server answered a command with an error; `code` is its first word, like `NOSCRIPT`, `OOM` or `READONLY`. */
export class RedisReplyError extends Error {
  readonly code: string

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RedisReplyError'
    this.code = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR'
  }
}
