import { placeOf, type Connect, type Reply } from './connection.js'
import type { ExistingCluster, ExistingServer } from './existing-client.js'
import { connectIoredis, PASSIVE_OPTIONS, type IoredisClient } from './ioredis-connection.js'
import { plain } from './reply.js'

interface NodePlace {
  readonly host?: string
  readonly port?: number
}

/** Options that were not given are null or absent. */
interface ServerOptions extends NodePlace {
  readonly path?: string | null
  readonly db?: number
  readonly tls?: object | null
  readonly keyPrefix?: string
  readonly sentinels?: readonly NodePlace[] | null
  readonly name?: string | null
  readonly stringNumbers?: boolean
  readonly protocol?: number
}

/** The part of a `Redis` of ioredis that the engine uses. */
export interface IoredisServer extends IoredisClient {
  readonly options: ServerOptions
  /** The state of the client: `normal`, `subscriber` or `monitor`. */
  readonly mode: string
  duplicate(options: object): IoredisClient
  sendCommand(command: unknown): unknown
}

type NatMap = Readonly<Record<string, NodePlace>> | ((node: string) => NodePlace | null | undefined)

/** The part of a `Cluster` of ioredis that the engine uses. */
export interface IoredisCluster {
  readonly status: string
  readonly options: {
    readonly keyPrefix?: string
    readonly redisOptions?: ServerOptions
    readonly natMap?: NatMap
  }
  connect(): Promise<void>
  nodes(role: 'master'): readonly IoredisServer[]
}

/** A `Redis` of ioredis: one server, or the master behind its Sentinels. */
export class ExistingIoredis implements ExistingServer {
  readonly name: string
  readonly keyPrefix: string
  readonly #client: IoredisServer
  /** The client without its automatic changes to commands: prefixes and pipelines. */
  readonly #bare: IoredisServer

  constructor(client: IoredisServer) {
    this.#client = client
    this.#bare = Object.create(client, {
      options: { value: { ...client.options, keyPrefix: '', enableAutoPipelining: false } },
      sendCommand: { value: client.sendCommand.bind(client) },
    }) as IoredisServer
    this.name = nameOf(client.options)
    this.keyPrefix = client.options.keyPrefix ?? ''
  }

  send([name, ...rest]: readonly string[]): Promise<Reply> {
    return plain(this.#bare.call(name!, ...rest))
  }

  connect(node?: string): Connect {
    const place = node === undefined ? {} : placeOf(node)
    return (listener, attempt) => {
      const client = this.#client.duplicate({
        ...PASSIVE_OPTIONS,
        ...place,
        connectTimeout: attempt.timeLimit,
      })
      return connectIoredis(client, listener, attempt)
    }
  }
}

function nameOf({ db, name, path, sentinels, tls, ...place }: ServerOptions): string {
  if (path) return `redis+unix://${path}`
  const scheme = tls ? 'rediss' : 'redis'
  if (!sentinels) return `${scheme}://${nodeName(place)}/${db ?? 0}`
  const places = sentinels.map(sentinel => nodeName({ port: 26_379, ...sentinel }))
  return `${scheme}+sentinel://${places.join(',')}/${name ?? ''}`
}

/** A `Cluster` of ioredis. */
export class ExistingIoredisCluster implements ExistingCluster {
  readonly name: string
  readonly keyPrefix: string
  readonly #cluster: IoredisCluster
  /** A node that the client has known. Without a connection, the client knows none. */
  #any: IoredisServer | undefined

  constructor(cluster: IoredisCluster) {
    const { keyPrefix, redisOptions } = cluster.options
    this.#cluster = cluster
    this.name = `${redisOptions?.tls ? 'rediss' : 'redis'}+cluster://${this.nodes().join(',')}`
    this.keyPrefix = keyPrefix ?? redisOptions?.keyPrefix ?? ''
  }

  isReady(): boolean | undefined {
    const { status } = this.#cluster
    if (status === 'wait') this.#cluster.connect().catch(() => undefined)
    return status === 'end' ? undefined : status === 'ready'
  }

  nodes(): readonly string[] {
    return this.#cluster.nodes('master').map(({ options }) => nodeName(options))
  }

  rename(node: string): string {
    const { natMap } = this.#cluster.options
    const mapped = typeof natMap === 'function' ? natMap(node) : natMap?.[node]
    return mapped ? nodeName(mapped) : node
  }

  connect(node: string): Connect {
    return async (listener, attempt) => {
      const [any = this.#any] = this.#cluster.nodes('master')
      if (any === undefined) throw new Error('the client does not know any node')
      this.#any = any
      return new ExistingIoredis(any).connect(node)(listener, attempt)
    }
  }
}

function nodeName({ host = 'localhost', port = 6379 }: NodePlace): string {
  return `${host}:${port}`
}
