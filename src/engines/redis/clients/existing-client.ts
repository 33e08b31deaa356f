import type { Connect, Reply } from './connection.js'

/** State of an existing client. `idle` connects on `wake`. Only its owner can connect one that is `closed`. */
export type ClientStatus = 'ready' | 'connecting' | 'idle' | 'closed'

/** The common part of existing clients of one server and of a cluster. */
interface ExistingClient {
  /** For errors and logs: the address without passwords. */
  readonly name: string
  /** The prefix that the client adds to every key, except in commands that are sent through this interface. */
  readonly keyPrefix: string
}

/** An existing client of one server. */
export interface ExistingServer extends ExistingClient {
  /** Its connection; undefined if commands of the engine must not go over it. */
  readonly connection: ExistingConnection | undefined
  /** Passes a command to the client. Rejects with RedisReplyError for an error reply. */
  send(args: readonly string[]): Promise<Reply>
  /** Makes one more connection like that of the client. */
  connect(): Connect
}

/** The connection of an existing client, which the client makes again when it is lost. */
export interface ExistingConnection {
  readonly status: ClientStatus
  /** Rises with each connection of the client; 0 before the first one is ready. */
  readonly epoch: number
  /** Connects a client that is idle. */
  wake(): void
  /** As {@link ExistingServer.send}. */
  send(args: readonly string[]): Promise<Reply>
  /** As {@link ExistingServer.connect}. */
  connect(): Connect
}

/** An existing client that is connected to the masters of a cluster. Nodes are named by `host:port`. */
export interface ExistingCluster extends ExistingClient {
  readonly status: ClientStatus
  /** Connects a client that is idle. */
  wake(): void
  /** The masters that the client knows, by their addresses from here. */
  nodes(): readonly string[]
  /** The client's connection to a node; undefined when it has none, or commands of the engine must not go over it. */
  connection(node: string): ExistingConnection | undefined
  /** Returns the address of a node from here, by its address within the cluster. */
  rename(node: string): string
  /** Makes one more connection to a node, like those of the client. */
  connect(node: string): Connect
}
