import { systemClock } from '../../base/clock.js'
import { ClusterLink } from './clients/cluster-link.js'
import { DEFAULT_TIMEOUTS, placeOf, type ClientPackage } from './clients/connection.js'
import { untilReady } from './clients/existing-commands.js'
import type { Existing } from './clients/detect-client.js'
import type { LinkMaker } from './clients/redis-link.js'
import { connectToMaster } from './clients/sentinel.js'
import { sharedLink } from './clients/shared-link.js'
import { ServerLink } from './clients/server-link.js'
import type { RedisPlace } from './redis-url.js'

/** Makes links to the servers of a URL, over connections of their own. */
export function linkTo(
  { login, name, server }: RedisPlace,
  connect: ClientPackage,
  timeouts = DEFAULT_TIMEOUTS,
): LinkMaker {
  return listener => {
    const parts = { name, listener, clock: systemClock, timeouts }
    if (server.kind === 'server') return new ServerLink(parts, connect(server.address, login))
    if (server.kind === 'sentinel')
      return new ServerLink(parts, connectToMaster({ ...server, login, connect }))
    const { seeds } = server
    const { tls } = seeds[0]!
    return new ClusterLink(parts, {
      seeds: async () => seeds.map(({ host, port }) => `${host}:${port}`),
      rename: node => node,
      existing: () => undefined,
      connect: node => connect({ ...placeOf(node), tls }, login),
    })
  }
}

/**
 * Makes links over an existing client. Commands go over its connections if it offers them. All other connections are
 * opened with the client's options.
 */
export function linkOver({ client, kind }: Existing, timeouts = DEFAULT_TIMEOUTS): LinkMaker {
  return listener => {
    const parts = { name: client.name, listener, clock: systemClock, timeouts }
    if (kind === 'server') return new ServerLink(parts, client.connect(), client.connection)
    return new ClusterLink(parts, {
      seeds: async () => {
        await untilReady(client, parts)
        return client.nodes()
      },
      rename: node => client.rename(node),
      existing: node => client.connection(node),
      connect: node => client.connect(node),
    })
  }
}

/**
 * Makes links like those of {@link linkTo}, but they share their connections with other links to the same servers. With
 * `minReplicas`, each link has its own connections, because a server that waits for replicas executes nothing else on
 * the same connection.
 */
export function sharedLinkTo(place: RedisPlace, connect: ClientPackage): LinkMaker {
  const { login, name, options, server } = place
  const make = linkTo(place, connect)
  if (options.minReplicas > 0) return make
  return sharedLink({
    key: JSON.stringify([name, server, login]),
    name,
    cluster: server.kind === 'cluster',
    make,
  })
}
