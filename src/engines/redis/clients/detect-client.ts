import { InvalidArgumentError, shown } from '../../../base/errors.js'
import type { ExistingCluster, ExistingServer } from './existing-client.js'
import {
  ExistingIoredis,
  ExistingIoredisCluster,
  type IoredisCluster,
  type IoredisServer,
} from './existing-ioredis.js'
import {
  ExistingNodeRedis,
  ExistingNodeRedisCluster,
  type NodeRedisCluster,
  type NodeRedisServer,
} from './existing-node-redis.js'

/** An existing client of one server or of a cluster. */
export type Existing =
  | { readonly kind: 'server'; readonly client: ExistingServer }
  | { readonly kind: 'cluster'; readonly client: ExistingCluster }

/**
 * Detects the kind of a client by its methods: a `Redis` or a `Cluster` of ioredis, a client or a cluster of
 * node-redis.
 * @throws InvalidArgumentError when it is none of these, or can't be used
 */
export function detectClient(client: unknown): Existing {
  if (typeof client === 'object' && client !== null) {
    const has = (...methods: string[]): boolean =>
      methods.every(name => typeof Reflect.get(client, name) === 'function')
    if (has('nodes', 'call', 'sendCommand'))
      return { kind: 'cluster', client: new ExistingIoredisCluster(client as IoredisCluster) }
    if (has('nodeClient', 'sendCommand'))
      return { kind: 'cluster', client: new ExistingNodeRedisCluster(client as unknown as NodeRedisCluster) }
    if (has('getSentinelNode'))
      throw unusable("a sentinel client of node-redis; open('redis+sentinel://…') instead")
    if (has('execute', 'destroy')) throw unusable('a pool of clients; give one client')
    if (has('duplicate', 'call', 'sendCommand'))
      return { kind: 'server', client: fitIoredis(client as IoredisServer) }
    if (has('duplicate', 'destroy', 'sendCommand'))
      return { kind: 'server', client: new ExistingNodeRedis(client as NodeRedisServer) }
  }
  throw unusable(shown(client))
}

function fitIoredis(client: IoredisServer): ExistingIoredis {
  const { mode, options } = client
  if (options.stringNumbers === true) throw unusable('one with the option stringNumbers')
  if (mode === 'monitor' || (mode === 'subscriber' && options.protocol !== 3))
    throw unusable(`one in ${mode} mode, which takes no other commands`)
  return new ExistingIoredis(client)
}

function unusable(what: string): InvalidArgumentError {
  return new InvalidArgumentError(`redis must be a client or a cluster of ioredis or node-redis, not ${what}`)
}
