import { placeOf, type Connect, type Reply } from './connection.js'
import type { ExistingCluster, ExistingServer } from './existing-client.js'
import {
  connectNodeRedis,
  PASSIVE_OPTIONS,
  passiveSocket,
  SEND_OPTIONS,
  type NodeRedisClient,
} from './node-redis-connection.js'
import { plain } from './reply.js'

interface ServerOptions {
  readonly socket?: {
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly tls?: boolean
  }
  readonly database?: number
}

/** The part of a client of node-redis that the engine uses. */
export interface NodeRedisServer extends NodeRedisClient {
  readonly options: ServerOptions | undefined
  /** Since version 6. */
  readonly _keyPrefix?: string
  duplicate(options: object): NodeRedisClient
}

interface Node {
  readonly address: string
  readonly client?: NodeRedisServer
}

interface NodeAddress {
  readonly host: string
  readonly port: number
}

/** Maps the addresses of nodes that the client can't use, such as those in a container. */
type NodeAddressMap = Readonly<Record<string, NodeAddress>> | ((address: string) => NodeAddress | undefined)

/** The part of a cluster of node-redis that the engine uses. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly _options?: { readonly nodeAddressMap?: NodeAddressMap }
  /** Returns the client of a node. If there is none, creates it at once, and connects it. */
  nodeClient(node: Node): Promise<unknown>
  readonly masters: readonly Node[]
  readonly nodeByAddress: ReadonlyMap<string, Node>
  /** Since version 6. */
  readonly _keyPrefix?: string
}

/** A client of node-redis. */
export class ExistingNodeRedis implements ExistingServer {
  readonly name: string
  readonly keyPrefix: string
  readonly #client: NodeRedisServer

  constructor(client: NodeRedisServer) {
    const { database = 0, socket: { host = 'localhost', path, port = 6379, tls } = {} } = client.options ?? {}
    this.#client = client
    this.keyPrefix = client._keyPrefix ?? ''
    this.name =
      path === undefined
        ? `${tls === true ? 'rediss' : 'redis'}://${host}:${port}/${database}`
        : `redis+unix://${path}`
  }

  send(args: readonly string[]): Promise<Reply> {
    return plain(this.#client.sendCommand(args, SEND_OPTIONS))
  }

  connect(node?: string): Connect {
    const place = node === undefined ? {} : placeOf(node)
    return (listener, attempt) => {
      const socket = { ...this.#client.options?.socket, ...place, ...passiveSocket(attempt) }
      // The other options already contain the settings of the URL.
      const client = this.#client.duplicate({ ...PASSIVE_OPTIONS, url: undefined, socket })
      return connectNodeRedis(client, listener, attempt)
    }
  }
}

/** A cluster of node-redis. The engine uses its clients as it uses {@link ExistingNodeRedis}. */
export class ExistingNodeRedisCluster implements ExistingCluster {
  readonly name: string
  readonly keyPrefix: string
  readonly #cluster: NodeRedisCluster

  constructor(cluster: NodeRedisCluster) {
    this.#cluster = cluster
    this.keyPrefix = cluster._keyPrefix ?? ''
    this.name = `redis+cluster://${this.nodes().join(',')}`
  }

  isReady(): boolean | undefined {
    const { isOpen, masters } = this.#cluster
    return isOpen ? masters.length > 0 : undefined
  }

  nodes(): readonly string[] {
    return this.#cluster.masters.map(({ address }) => address)
  }

  rename(node: string): string {
    // The client finds its nodes by their addresses within the cluster, even if it reaches them at other addresses.
    return node
  }

  connect(node: string): Connect {
    return async (listener, attempt) => {
      const own = this.#client(node)
      if (own !== undefined) return own.connect()(listener, attempt)
      const other = this.nodes().flatMap(each => this.#client(each) ?? [])[0] ?? this.#first()
      return other.connect(this.#reachable(node))(listener, attempt)
    }
  }

  /** With `minimizeConnections`, the cluster makes a client only when it needs one. */
  #first(): ExistingNodeRedis {
    const [master] = this.#cluster.masters
    if (!master) throw new Error('the client does not know any node')
    this.#cluster.nodeClient(master).catch(() => undefined)
    return this.#client(master.address)!
  }

  /** The address at which the client reaches a node for which it has no client. */
  #reachable(node: string): string {
    const { nodeAddressMap: map } = this.#cluster._options ?? {}
    const address = typeof map === 'function' ? map(node) : map?.[node]
    return address ? `${address.host}:${address.port}` : node
  }

  #client(node: string): ExistingNodeRedis | undefined {
    const client = this.#cluster.nodeByAddress.get(node)?.client
    return client && new ExistingNodeRedis(client)
  }
}
