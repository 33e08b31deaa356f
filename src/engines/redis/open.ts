import { systemClock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import type { Engine } from '../../engine/contract.js'
import { checkUrl } from '../../engine/kit/check-url.js'
import { installedPackage } from './clients/installed-package.js'
import { detectClient, type Existing } from './clients/detect-client.js'
import { linkOver, linkTo, shared } from './links.js'
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
  if (typeof source === 'string') {
    const place = parseRedisUrl(source)
    const { login, name, options, server } = place
    const parts = {
      key: JSON.stringify([name, server, login]),
      name,
      cluster: server.kind === 'cluster',
      make: linkTo(place, await installedPackage()),
    }
    return new RedisEngine(shared(parts, options), options, systemClock)
  }
  const { existing, options } = existingOf(source)
  const parts = {
    key: source.redis,
    name: existing.client.name,
    cluster: existing.kind === 'cluster',
    make: linkOver(existing),
  }
  return new RedisEngine(shared(parts, options), options, systemClock)
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
  if (typeof source === 'string') {
    checkUrl(source)
    const place = parseRedisUrl(source)
    checkServer(place.name, place.server.kind, place.options)
    return new RedisEngine(linkTo(place, await installedPackage()), place.options, systemClock)
  }
  const { existing, options } = existingOf(source)
  checkServer('redis', existing.kind, options)
  return new RedisEngine(linkOver(existing), options, systemClock)
}

function existingOf({ redis, ...more }: ExistingRedis): {
  existing: Existing
  options: Required<RedisOptions>
} {
  const options = redisOptions(more)
  const existing = detectClient(redis)
  // The engine adds the client's key prefix itself, because the client does not add it in channels and calls.
  return { existing, options: { ...options, prefix: existing.client.keyPrefix + options.prefix } }
}

/** @throws InvalidArgumentError for a cluster, and for the layout of Redisson */
function checkServer(source: string, kind: string, { layout }: Required<RedisOptions>): void {
  if (kind === 'cluster') throw new InvalidArgumentError(`${source} must be a single server, not a cluster`)
  if (layout !== 'string')
    throw new InvalidArgumentError(`${source} must have layout 'string', not ${shown(layout)}`)
}
