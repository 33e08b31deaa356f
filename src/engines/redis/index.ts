/** A Redis server with the lock table, for engines that keep their locks on several independent servers. */
export { openRedisServer } from './open.js'
export type { ExistingRedis, RedisOptions } from './redis-options.js'
export type { IdentifiedReport, RedisServer, VoteTerms } from './redis-server.js'
