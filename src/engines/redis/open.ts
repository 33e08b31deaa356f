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
 * Opens the engine of a Redis URL or of an existing client.
 * @throws InvalidArgumentError when the URL, the client or an option is invalid; MissingPackageError when no client
 * package is installed
 */
export async function openRedis(source: string | ExistingRedis): Promise<Engine> {
  if (typeof source === 'string') {
    const place = parseRedisUrl(source)
    return engineOver(sharedLinkTo(place, await installedPackage()), place.options)
  }
  const { redis, ...more } = source
  const options = redisOptions(more)
  const given = detectClient(redis)
  // The engine adds the client's key prefix itself, because the client does not add it in channels and calls.
  return engineOver(linkOver(given), { ...options, prefix: given.client.keyPrefix + options.prefix })
}

function engineOver(makeLink: LinkMaker, options: RedisEngineOptions): Engine {
  const engine = new RedisEngine(makeLink, options, systemClock)
  return engine.cluster ? new ClusterEngine(engine) : engine
}
