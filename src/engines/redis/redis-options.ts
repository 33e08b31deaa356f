import { InvalidArgumentError, shown } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import { OWN } from './names.js'

/** Options of the Redis engine, in the query of its URL or next to `redis`. */
export interface RedisOptions {
  /** Prefix of all keys and channels in Redis. Default: none. */
  readonly prefix?: string
  /** Minimum number of replicas that must receive a grant, renewal or commit before it is confirmed. Default: 0. */
  readonly minReplicas?: number
  /**
   * The format of held locks, which other clients see: a string as `SET key value NX PX` sets it (default), or the hash
   * of Redisson's RLock.
   */
  readonly layout?: 'string' | 'redisson'
}

/** An existing client, and the options of its engine. */
export interface ExistingRedis extends RedisOptions {
  /**
   * A `Redis` or `Cluster` of ioredis, or a client or cluster of node-redis. The engine opens connections with the
   * client's options, and never closes the client.
   */
  readonly redis: object
}

const KNOWN = ['prefix', 'minReplicas', 'layout']

/**
 * Returns the options with their defaults.
 * @throws InvalidArgumentError that names the invalid option
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
