import type { RedisOptions } from './redis/redis-options.js'

/** Existing clients, one for each of several independent servers. Needs the package `signalbox-redis-quorum`. */
export interface ExistingRedisQuorum extends Omit<RedisOptions, 'layout'> {
  /**
   * At least three, each a `Redis` of ioredis or a client of node-redis for a server that is independent of the others.
   * The engine never closes them. It sends commands over clients of ioredis, and opens further connections like those
   * of each client.
   */
  readonly redisQuorum: readonly object[]
}
