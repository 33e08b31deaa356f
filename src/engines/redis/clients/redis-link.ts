import type { Clock } from '../../../base/clock.js'
import type { Timeouts, Reply } from './connection.js'
import type { ReconnectingConnection } from './reconnecting-connection.js'

/** The answer to a command, and the connection over which it was sent. */
export interface Answered {
  readonly reply: Reply
  readonly server: Pick<ReconnectingConnection, 'epoch' | 'send'>
  /** The epoch of the connection when the command was sent. */
  readonly epoch: number
}

/**
 * Sends commands in order, and receives the messages of channels. It is the same with ioredis and node-redis, and for
 * one server, a server behind Sentinels, and a cluster.
 */
export interface RedisLink {
  /** For errors and logs: the address without passwords. */
  readonly name: string
  /** Whether keys live on several masters by hash slot; then every command goes to the master of its `route`. */
  readonly cluster: boolean
  /** Changes when a connection is replaced. */
  readonly epoch: number
  /**
   * Connects, if it isn't connected.
   * @throws UnavailableError when no server answers in time, or it rejects the login: wrong password, unknown database.
   */
  connect(): Promise<void>
  /**
   * Sends a command. After a loss, it first waits until the first attempts to connect have ended. Commands with the
   * same route that are sent within one tick arrive in that order.
   *
   * Rejects with RedisReplyError when the server answered with an error, with UnavailableError when the command was
   * certainly not sent, and with IndeterminateError when it may have been executed: with ConnectionLostError if its
   * connection was lost. Without an answer within the timeout of the link, rejects with IndeterminateError, so it
   * always settles.
   * @param route a key whose slot decides which master gets the command on Cluster; ignored elsewhere.
   */
  command(route: string, args: readonly string[]): Promise<Reply>
  /** Sends a command as {@link command} does, and returns which server has answered. */
  call(route: string, args: readonly string[]): Promise<Answered>
  /**
   * Returns a function for each master that sends a command to it: for SCAN, which covers only one server. Rejects as
   * {@link command} does.
   */
  masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]>
  /**
   * Receives the messages of a channel from when the promise settles until {@link unsubscribe}, also after the
   * connection was replaced. The first call opens the subscription connection. On Cluster the channel is a sharded one
   * (`SSUBSCRIBE`).
   */
  subscribe(channel: string): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Closes its own connections, but not those of an existing client. Never throws. */
  close(): Promise<void>
}

/** Receives the events of a link. */
export interface LinkListener {
  message(channel: string, text: string): void
  /** Messages may have been missed: the subscription connection was lost and subscribes again. */
  resubscribed(): void
}

/** Makes the link of an engine to its server or servers. */
export type LinkMaker = (listener: LinkListener) => RedisLink

export interface LinkParts {
  /** For errors and logs: the address without passwords. */
  readonly name: string
  readonly listener: LinkListener
  readonly clock: Clock
  readonly timeouts: Timeouts
}
