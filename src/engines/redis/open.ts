import { systemClock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import type { Engine } from '../../engine/contract.js'
import { checkUrl } from '../../engine/kit/check-url.js'
import { installedPackage } from './clients/installed-package.js'
import { detectClient } from './clients/detect-client.js'
import { sharedLink, type SharedLinkParts } from './clients/shared-link.js'
import { linkOver, linkTo } from './links.js'
import { RedisEngine } from './redis-engine.js'
import { redisOptions, type ExistingRedis, type RedisOptions } from './redis-options.js'
import type { RedisServer } from './redis-server.js'
import { parseRedisUrl } from './redis-url.js'

/**
 * Opens the engine of a Redis URL or of an existing client.
 * @throws InvalidArgumentError when the URL, the client or an option is invalid; MissingPackageError when no client
 * package is installed
 */
export async function openRedis(source: string | ExistingRedis): Promise<Engine> {
  const { options, ...link } = await sourceOf(source)
  // A server that waits for replicas executes nothing else on the same connection.
  const makeLink = options.minReplicas > 0 ? link.make : sharedLink(link)
  return new RedisEngine(makeLink, options, systemClock)
}

/**
 * Opens one of several independent servers, for an engine that keeps its locks on a number of them. It has connections
 * of its own.
 *
 * ```ts
 * const server = await openRedisServer('redis://localhost:6379/0?prefix=app:')
 * ```
 * @throws InvalidArgumentError when the URL, the client or an option is invalid, for a cluster, and for the layout of
 * Redisson, in which a held key has no number; MissingPackageError when no client package is installed
 */
export async function openRedisServer(source: string | ExistingRedis): Promise<RedisServer> {
  if (typeof source === 'string') checkUrl(source)
  const { cluster, make, name, options } = await sourceOf(source)
  const what = typeof source === 'string' ? name : 'redis'
  if (cluster) throw new InvalidArgumentError(`${what} must be a single server, not a cluster`)
  if (options.layout !== 'string')
    throw new InvalidArgumentError(`${what} must have layout 'string', not ${shown(options.layout)}`)
  return new RedisEngine(make, options, systemClock)
}

async function sourceOf(
  source: string | ExistingRedis,
): Promise<SharedLinkParts & { options: Required<RedisOptions> }> {
  if (typeof source === 'string') {
    const place = parseRedisUrl(source)
    const { login, name, options, server } = place
    const make = linkTo(place, await installedPackage())
    return {
      key: JSON.stringify([name, server, login]),
      name,
      cluster: server.kind === 'cluster',
      make,
      options,
    }
  }
  const { redis, ...more } = source
  const options = redisOptions(more)
  const existing = detectClient(redis)
  const { keyPrefix, name } = existing.client
  return {
    key: redis,
    name,
    cluster: existing.kind === 'cluster',
    make: linkOver(existing),
    // The engine adds the client's key prefix itself, because the client does not add it in channels and calls.
    options: { ...options, prefix: keyPrefix + options.prefix },
  }
}
