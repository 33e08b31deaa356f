import { systemClock } from '../../base/clock.js'
import type { Engine } from '../../engine/contract.js'
import { ClusterEngine } from './cluster-engine.js'
import { installedPackage } from './clients/installed-package.js'
import { detectClient } from './clients/detect-client.js'
import type { LinkMaker } from './clients/redis-link.js'
import { linkOver, sharedLinkTo } from './links.js'
import { RedisEngine, type RedisEngineOptions } from './redis-engine.js'
import { redisOptions, type ExistingRedis } from './redis-options.js'
import { parseRedisUrl } from './redis-url.js'

/**
 * The engine of a Redis URL, or over a client that is given.
 * @throws InvalidArgumentError when the URL, the client or an option is unfit; UnavailableError when no client package
 * is installed
 */
export async function openRedis(source: string | ExistingRedis): Promise<Engine> {
  if (typeof source === 'string') {
    const place = parseRedisUrl(source)
    return engineOver(sharedLinkTo(place, await installedPackage()), place.options)
  }
  const { redis, ...more } = source
  const options = redisOptions(more)
  const given = detectClient(redis)
  // What the client itself puts before keys, the engine does for it: in channels and calls the client would not.
  return engineOver(linkOver(given), { ...options, prefix: given.client.keyPrefix + options.prefix })
}

function engineOver(makeLink: LinkMaker, options: RedisEngineOptions): Engine {
  const engine = new RedisEngine(makeLink, options, systemClock)
  return engine.cluster ? new ClusterEngine(engine) : engine
}
