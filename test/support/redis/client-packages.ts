import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis6'
import { createClient, createCluster } from 'redis'
import { createClient as createClient6, createCluster as createCluster6 } from 'redis6'
import type { ClientPackage } from '../../../src/engines/redis/clients/connection.js'
import { ioredisPackage } from '../../../src/engines/redis/clients/ioredis-connection.js'
import { nodeRedisPackage } from '../../../src/engines/redis/clients/node-redis-connection.js'

/** A client that a user of the package makes and passes to a box. */
export interface UserClient {
  readonly client: object
  close(): void
}

/** A client package in one of its versions, as users have it. */
export interface TestedPackage {
  readonly name: string
  /** The versions of the protocol that it speaks. */
  readonly protocols: readonly (2 | 3)[]
  readonly connectWith: ClientPackage
  /** Returns a connected client. @param resp the version of the protocol, if the package has a choice */
  client(url: string, resp?: 2 | 3): Promise<UserClient>
  /** Returns a connected client of a cluster. */
  cluster(nodes: readonly { host: string; port: number }[]): Promise<UserClient>
}

function ioredis(
  name: string,
  protocols: readonly (2 | 3)[],
  RedisClass: typeof Redis,
  ClusterClass: typeof Cluster,
): TestedPackage {
  return {
    name,
    protocols,
    connectWith: ioredisPackage(RedisClass),
    async client(url, resp) {
      const client = new RedisClass(url, resp === undefined ? {} : ({ protocol: resp } as object))
      client.on('error', () => {})
      await client.ping()
      return { client, close: () => client.disconnect() }
    },
    async cluster(nodes) {
      const client = new ClusterClass([...nodes])
      client.on('error', () => {})
      await client.ping()
      return { client, close: () => client.disconnect() }
    },
  }
}

function nodeRedis(
  name: string,
  create: typeof createClient,
  createOfCluster: typeof createCluster,
): TestedPackage {
  return {
    name,
    protocols: [2, 3],
    connectWith: nodeRedisPackage(create),
    async client(url, resp) {
      const client = create({ url, ...(resp === undefined ? {} : { RESP: resp }) })
      client.on('error', () => {})
      await client.connect()
      const close = () => {
        if (client.isOpen) client.destroy()
      }
      return { client, close }
    },
    async cluster(nodes) {
      const client = createOfCluster({ rootNodes: nodes.map(socket => ({ socket })) })
      client.on('error', () => {})
      await client.connect()
      return { client, close: () => client.destroy() }
    },
  }
}

/** The client packages that the Redis engine works with, in every major version. */
export const clientPackages: readonly TestedPackage[] = [
  ioredis('ioredis 5', [2], Redis, Cluster),
  // The types of the versions differ only in parts that are not used here.
  ioredis('ioredis 6', [2, 3], Redis6 as unknown as typeof Redis, Cluster6 as unknown as typeof Cluster),
  nodeRedis('node-redis 5', createClient, createCluster),
  nodeRedis(
    'node-redis 6',
    createClient6 as unknown as typeof createClient,
    createCluster6 as unknown as typeof createCluster,
  ),
]
