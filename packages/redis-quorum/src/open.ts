import { InvalidArgumentError, type ExistingRedisQuorum } from 'signalbox'
import { checkUrl, shown, systemClock } from 'signalbox/engine'
import { openRedisServer, type RedisServer } from 'signalbox/redis'
import { QuorumEngine } from './quorum-engine.js'
import { parseQuorumUrl } from './quorum-url.js'

/** With fewer servers, no majority would be left after the loss of one. */
const MIN_SERVERS = 3

/**
 * Opens the engine of a quorum URL or of existing clients, for `open({ engine })`. `open` does it for a URL with
 * `redis-quorum:` or `rediss-quorum:`, and for `{ redisQuorum: [client, …] }`.
 *
 * ```ts
 * const engine = await openRedisQuorum('redis-quorum://a:6379,b:6379,c:6379')
 * const box = await open({ engine })
 * ```
 * @throws InvalidArgumentError when the URL, a client or an option is invalid; MissingPackageError when no client
 * package is installed
 */
export async function openRedisQuorum(source: string | ExistingRedisQuorum): Promise<QuorumEngine> {
  if (typeof source !== 'string') return overClients(source)
  checkUrl(source)
  const { name, servers } = parseQuorumUrl(source)
  return quorumOf(name, await Promise.all(servers.map(openRedisServer)))
}

async function overClients({ redisQuorum, ...options }: ExistingRedisQuorum): Promise<QuorumEngine> {
  if (!Array.isArray(redisQuorum))
    throw new InvalidArgumentError(`redisQuorum must be a list of clients, not ${shown(redisQuorum)}`)
  const opening = redisQuorum.map((redis: object) => openRedisServer({ ...options, redis }))
  const servers = await Promise.all(opening)
  const name = `redis-quorum://${servers.map(server => server.name.replace(/^\w+:\/\//, '')).join(',')}`
  const prefixes = new Set(servers.map(({ prefix }) => prefix))
  if (prefixes.size > 1)
    throw new InvalidArgumentError(
      `redisQuorum must have clients with the same keyPrefix, not ${prefixes.size}`,
    )
  return quorumOf(name, servers)
}

function quorumOf(name: string, servers: readonly RedisServer[]): QuorumEngine {
  // A server that is named twice would have two votes.
  const different = new Set(servers.map(server => server.name))
  if (servers.length < MIN_SERVERS || different.size < servers.length)
    throw new InvalidArgumentError(
      `${name} needs at least ${MIN_SERVERS} different servers, preferably an odd number`,
    )
  return new QuorumEngine({ name, servers, clock: systemClock })
}
