import { systemClock } from '../../clock.js'
import { InvalidArgumentError, shown } from '../../errors.js'
import { installedPackage, type ClientPackage } from './clients/client-package.js'
import { DEFAULT_PATIENCE, type Address, type Connect } from './clients/connection.js'
import { givenCluster, givenServer } from './clients/given-link.js'
import { ownCluster } from './clients/own-cluster.js'
import { ownServer } from './clients/own-server.js'
import { recognise } from './clients/recognise.js'
import { connectToMaster } from './clients/sentinel.js'
import { RedisEngine, type LinkMaker } from './redis-engine.js'
import { redisOptions, type RedisOptions } from './redis-options.js'
import { parseRedisUrl, type RedisPlace } from './redis-url.js'

/** A client that is there already, and how Redis is used over it. */
export interface GivenRedis extends RedisOptions {
  /**
   * A `Redis` or `Cluster` of ioredis, or a client or cluster of node-redis. It is used for commands and stays the
   * caller's; one connection like it is opened for messages.
   */
  readonly redis: object
}

/**
 * The engine of a Redis URL, or over a client that is given.
 * @throws InvalidArgumentError when the URL, the client or an option is unfit; UnavailableError when no client package
 * is installed
 */
export async function openRedis(source: string | GivenRedis): Promise<RedisEngine> {
  if (typeof source === 'string') {
    const place = parseRedisUrl(source)
    return new RedisEngine(linkTo(place, await installedPackage()), place.options, systemClock)
  }
  if (typeof source !== 'object' || source === null)
    throw new InvalidArgumentError(`a Redis engine takes a URL or { redis: client }, not ${shown(source)}`)
  const { redis, ...given } = source
  const options = redisOptions(given)
  const { client, kind } = recognise(redis)
  // What the client itself puts before keys, the engine does for it: in channels and scripts the client would not.
  const prefix = client.keyPrefix + options.prefix
  const makeLink: LinkMaker = listener =>
    kind === 'server'
      ? givenServer(client, listener, systemClock, DEFAULT_PATIENCE)
      : givenCluster(client, listener, systemClock, DEFAULT_PATIENCE)
  return new RedisEngine(makeLink, { ...options, prefix }, systemClock)
}

/** Makes links over connections of their own to what a URL means. */
export function linkTo({ login, name, server }: RedisPlace, connectWith: ClientPackage): LinkMaker {
  const connect = (address: Address): Connect => connectWith(address, login)
  return listener => {
    const parts = { name, listener, clock: systemClock, patience: DEFAULT_PATIENCE }
    switch (server.kind) {
      case 'server':
        return ownServer({ ...parts, connect: connect(server.address) })
      case 'sentinel':
        return ownServer({ ...parts, connect: connectToMaster({ ...server, login, connect: connectWith }) })
      case 'cluster':
        return ownCluster({ ...parts, seeds: server.seeds, connect })
    }
  }
}
