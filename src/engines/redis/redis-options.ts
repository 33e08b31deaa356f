import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import { OWN } from './names.js'

/** How locks and values lie in Redis; part of the URL's query, or an option next to `client`. */
export interface RedisOptions {
  /** Comes before the name of everything that is kept in Redis. Default: nothing. */
  readonly prefix?: string
  /** So many replicas must have a grant, a renewal or a commit before it counts. Default: 0. */
  readonly minReplicas?: number
  /**
   * What a held lock looks like to others: a plain string as of `SET key value NX PX` (default), or the hash of
   * Redisson's RLock.
   */
  readonly layout?: 'string' | 'redisson'
}

/** A client that is there already, and how Redis is used over it. */
export interface ExistingRedis extends RedisOptions {
  /**
   * A `Redis` or `Cluster` of ioredis, or a client or cluster of node-redis. It stays the caller's. One of ioredis is used
   * for commands; further connections like it are opened.
   */
  readonly redis: object
}

const KNOWN = ['prefix', 'minReplicas', 'layout']

/**
 * The options with their defaults filled in.
 * @throws InvalidArgumentError that names the option that is unfit
 */
export function redisOptions(given: Readonly<Record<string, unknown>>): Required<RedisOptions> {
  checkOptions(given, KNOWN)
  const { prefix = '', minReplicas = 0, layout = 'string' } = given
  if (typeof prefix !== 'string')
    throw new InvalidArgumentError(`prefix must be a string, not ${shown(prefix)}`)
  if (prefix.includes(OWN))
    throw new InvalidArgumentError(
      `prefix must be a string without '${OWN}', which marks keys of Signalbox, not ${shown(prefix)}`,
    )
  if (typeof minReplicas !== 'number' || !Number.isSafeInteger(minReplicas) || minReplicas < 0)
    throw new InvalidArgumentError(`minReplicas must be a whole number, 0 or more, not ${shown(minReplicas)}`)
  if (layout !== 'string' && layout !== 'redisson')
    throw new InvalidArgumentError(`layout must be 'string' or 'redisson', not ${shown(layout)}`)
  return { prefix, minReplicas, layout }
}
