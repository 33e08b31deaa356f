import type { Connect, Reply } from './connection.js'

/**
 * Whether an existing client is connected, connecting, waiting for a call to connect, or not connected until its owner
 * connects it.
 */
export type ClientStatus = 'ready' | 'connecting' | 'idle' | 'closed'

/** What a existing client of one server and one of a cluster have in common. */
interface ExistingClient {
  /** For messages: the address without passwords. */
  readonly name: string
  /** What the client puts before every key on its own, but not before those that are sent through here. */
  readonly keyPrefix: string
  readonly status: ClientStatus
  /** Connects a client that is idle. */
  wake(): void
}

/** A existing client that is connected to one server. */
export interface ExistingServer extends ExistingClient {
  /** Rises with each connection of the client; 0 before the first one is ready. */
  readonly epoch: number
  /** Hands a command to the client. Rejects with RedisReplyError for an error reply. */
  send(args: readonly string[]): Promise<Reply>
  /** Makes one more connection like that of the client, to the same server or to another node. */
  connect(node?: string): Connect
}

/** A existing client that is connected to the masters of a cluster. Nodes are named by `host:port`. */
export interface ExistingCluster extends ExistingClient {
  /** The masters that the client knows, as they are reached from here. */
  nodes(): readonly string[]
  /** The client's connection to a node; undefined when it has none. */
  server(node: string): ExistingServer | undefined
  /** How a node is reached from here, by how the cluster calls it. */
  rename(node: string): string
  /** Makes one more connection to a node, like those of the client. */
  connect(node: string): Connect
}
