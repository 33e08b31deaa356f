import { systemClock } from '../../../base/clock.js'
import { InvalidArgumentError, shown } from '../../../base/errors.js'
import { installedPackage } from '../clients/installed-package.js'
import { detectClient } from '../clients/detect-client.js'
import type { LinkMaker } from '../clients/redis-link.js'
import { linkOver, linkTo } from '../links.js'
import { RedisEngine } from '../redis-engine.js'
import { redisOptions, type RedisOptions } from '../redis-options.js'
import { parseRedisUrl } from '../redis-url.js'
import { QuorumEngine } from './quorum-engine.js'
import { parseQuorumUrl } from './quorum-url.js'

/** Existing clients, one for each of several independent servers. */
export interface ExistingRedisQuorum extends Omit<RedisOptions, 'layout'> {
  /**
   * At least three, each a `Redis` of ioredis or a client of node-redis for a server that is independent of the others.
   * The engine never closes them. It sends commands over clients of ioredis, and opens further connections like those
   * of each client.
   */
  readonly redisQuorum: readonly object[]
}

/** With fewer servers, no majority would be left after the loss of one. */
const MIN_SERVERS = 3

/**
 * Opens the engine of a quorum URL or of existing clients.
 * @throws InvalidArgumentError when the URL, a client or an option is invalid; MissingPackageError when no client
 * package is installed
 */
export async function openRedisQuorum(source: string | ExistingRedisQuorum): Promise<QuorumEngine> {
  if (typeof source !== 'string') return overClients(source)
  const { name, servers } = parseQuorumUrl(source)
  const places = servers.map(parseRedisUrl)
  const { options } = places[0]!
  check(name, places, options)
  const client = await installedPackage()
  const linkMakers = places.map(place => linkTo(place, client))
  return quorumOf(name, linkMakers, options)
}

function overClients({ redisQuorum, ...given }: ExistingRedisQuorum): QuorumEngine {
  if (!Array.isArray(redisQuorum))
    throw new InvalidArgumentError(`redisQuorum must be a list of clients, not ${shown(redisQuorum)}`)
  const options = redisOptions(given)
  const clients = redisQuorum.map(detectClient).map(({ client, kind }) => {
    if (kind === 'cluster')
      throw new InvalidArgumentError('redisQuorum must have clients of single servers, not of a cluster')
    return client
  })
  const name = `redis-quorum://${clients.map(client => client.name.replace(/^\w+:\/\//, '')).join(',')}`
  check(name, clients, options)
  const prefixes = new Set(clients.map(({ keyPrefix }) => keyPrefix))
  if (prefixes.size > 1)
    throw new InvalidArgumentError(
      `redisQuorum must have clients with the same keyPrefix, not ${prefixes.size}`,
    )
  const [keyPrefix = ''] = prefixes
  const linkMakers = clients.map(client => linkOver({ kind: 'server', client }))
  return quorumOf(name, linkMakers, { ...options, prefix: keyPrefix + options.prefix })
}

function quorumOf(
  name: string,
  linkMakers: readonly LinkMaker[],
  options: Required<RedisOptions>,
): QuorumEngine {
  const engines = linkMakers.map(makeLink => new RedisEngine(makeLink, options, systemClock))
  return new QuorumEngine({ name, engines, clock: systemClock })
}

function check(name: string, servers: readonly { readonly name: string }[], { layout }: RedisOptions): void {
  // A server that is named twice would have two votes.
  const different = new Set(servers.map(server => server.name))
  if (servers.length < MIN_SERVERS || different.size < servers.length)
    throw new InvalidArgumentError(
      `${name} needs at least ${MIN_SERVERS} different servers, preferably an odd number`,
    )
  if (layout !== 'string')
    throw new InvalidArgumentError(`${name} must have layout 'string', not ${shown(layout)}`)
}
