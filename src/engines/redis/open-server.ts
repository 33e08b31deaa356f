import { systemClock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkUrl } from '../../engine/kit/check-url.js'
import { detectClient } from './clients/detect-client.js'
import { installedPackage } from './clients/installed-package.js'
import type { LinkMaker } from './clients/redis-link.js'
import { linkOver, linkTo } from './links.js'
import { RedisEngine } from './redis-engine.js'
import { redisOptions, type ExistingRedis, type RedisOptions } from './redis-options.js'
import type { RedisServer } from './redis-server.js'
import { parseRedisUrl } from './redis-url.js'

/**
 * Opens one of several independent servers, for an engine that keeps its locks on a number of them. It has connections
 * of its own, except that it sends commands over an existing client of ioredis.
 *
 * ```ts
 * const server = await openRedisServer('redis://localhost:6379/0?prefix=app:')
 * ```
 * @throws InvalidArgumentError when the URL, the client or an option is invalid, for a cluster, and for the layout of
 * Redisson, in which a held key has no number; MissingPackageError when no client package is installed
 */
export async function openRedisServer(source: string | ExistingRedis): Promise<RedisServer> {
  if (typeof source === 'string') {
    checkUrl(source)
    const place = parseRedisUrl(source)
    checkKind(place.server.kind, place.name)
    return serverOver(place.name, linkTo(place, await installedPackage()), place.options)
  }
  const { redis, ...more } = source
  const options = redisOptions(more)
  const existing = detectClient(redis)
  const { client } = existing
  checkKind(existing.kind, 'redis')
  // As in `openRedis`, the client does not add its key prefix itself.
  const prefix = client.keyPrefix + options.prefix
  return serverOver(client.name, linkOver(existing), { ...options, prefix })
}

/** @throws InvalidArgumentError for a cluster */
function checkKind(kind: string, source: string): void {
  if (kind === 'cluster') throw new InvalidArgumentError(`${source} must be a single server, not a cluster`)
}

function serverOver(name: string, makeLink: LinkMaker, options: Required<RedisOptions>): RedisServer {
  const { layout } = options
  if (layout !== 'string')
    throw new InvalidArgumentError(`${name} must have layout 'string', not ${shown(layout)}`)
  return new RedisEngine(makeLink, options, systemClock)
}
