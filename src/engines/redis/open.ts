import { systemClock } from '../../clock.js'
import type { Engine } from '../../engine/contract.js'
import { installedPackage, type ClientPackage } from './clients/client-package.js'
import { DEFAULT_PATIENCE, type Address, type Connect } from './clients/connection.js'
import { givenCluster, givenServer } from './clients/given-link.js'
import { ownCluster } from './clients/own-cluster.js'
import { ownServer } from './clients/own-server.js'
import { recognise } from './clients/recognise.js'
import { connectToMaster } from './clients/sentinel.js'
import { RedisEngine, type LinkMaker, type RedisEngineOptions } from './redis-engine.js'
import { redisOptions, type GivenRedis } from './redis-options.js'
import { SlotsEngine } from './slots-engine.js'
import { parseRedisUrl, type RedisPlace } from './redis-url.js'

/**
 * The engine of a Redis URL, or over a client that is given.
 * @throws InvalidArgumentError when the URL, the client or an option is unfit; UnavailableError when no client package
 * is installed
 */
export async function openRedis(source: string | GivenRedis): Promise<Engine> {
  if (typeof source === 'string') {
    const place = parseRedisUrl(source)
    return engineOver(linkTo(place, await installedPackage()), place.options)
  }
  const { redis, ...given } = source
  const options = redisOptions(given)
  const { client, kind } = recognise(redis)
  // What the client itself puts before keys, the engine does for it: in channels and scripts the client would not.
  const prefix = client.keyPrefix + options.prefix
  const makeLink: LinkMaker = listener =>
    kind === 'server'
      ? givenServer(client, listener, systemClock, DEFAULT_PATIENCE)
      : givenCluster(client, listener, systemClock, DEFAULT_PATIENCE)
  return engineOver(makeLink, { ...options, prefix })
}

function engineOver(makeLink: LinkMaker, options: RedisEngineOptions): Engine {
  const engine = new RedisEngine(makeLink, options, systemClock)
  return engine.cluster ? new SlotsEngine(engine, systemClock) : engine
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
