import type { Connect, Reply } from './connection.js'

/**
 * The common part of existing clients of one server and of a cluster. The engine opens connections like theirs, and
 * sends none of its commands over the client's: there they could wait behind blocking commands, or in the client's
 * queue, and node-redis before 6.2 may take each reply for the reply to the command before
 * (https://github.com/redis/node-redis/issues/1593).
 */
interface ExistingClient {
  /** For errors and logs: the address without passwords. */
  readonly name: string
  /** The prefix that the client adds to every key, except in commands that are sent through this interface. */
  readonly keyPrefix: string
}

/** An existing client of one server. */
export interface ExistingServer extends ExistingClient {
  /** Passes a command to the client. Rejects with RedisReplyError for an error reply. */
  send(args: readonly string[]): Promise<Reply>
  /** Makes one more connection like that of the client. */
  connect(): Connect
}

/** An existing client that is connected to the masters of a cluster. Nodes are named by `host:port`. */
export interface ExistingCluster extends ExistingClient {
  /** Whether it knows its nodes; undefined if only its owner can connect it. Connects a client that is idle. */
  isReady(): boolean | undefined
  /** The masters that the client knows, by their addresses from here. */
  nodes(): readonly string[]
  /** Returns the address of a node from here, by its address within the cluster. */
  rename(node: string): string
  /** Makes one more connection to a node, like those of the client. */
  connect(node: string): Connect
}
