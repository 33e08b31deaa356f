import { systemClock } from '../../base/clock.js'
import { pause } from '../../base/pause.js'
import { ClusterLink } from './clients/cluster-link.js'
import { DEFAULT_TIMEOUTS, placeOf, type ClientPackage } from './clients/connection.js'
import type { ExistingCluster } from './clients/existing-client.js'
import { unreachable } from './clients/failures.js'
import type { Existing } from './clients/detect-client.js'
import type { LinkMaker, LinkParts } from './clients/redis-link.js'
import { connectToMaster } from './clients/sentinel.js'
import { ServerLink } from './clients/server-link.js'
import type { RedisPlace } from './redis-url.js'

/** How often the state of a connecting client is checked, in milliseconds. */
const LOOK = 10

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
      connect: node => connect({ ...placeOf(node), tls }, login),
    })
  }
}

/** Makes links over connections like those of an existing client. */
export function linkOver({ client, kind }: Existing, timeouts = DEFAULT_TIMEOUTS): LinkMaker {
  return listener => {
    const parts = { name: client.name, listener, clock: systemClock, timeouts }
    if (kind === 'server') return new ServerLink(parts, client.connect())
    return new ClusterLink(parts, {
      seeds: () => nodesOf(client, parts),
      rename: node => client.rename(node),
      connect: node => client.connect(node),
    })
  }
}

/** Waits for a client of a cluster to know its nodes. @throws UnavailableError when it is closed, or not ready in time */
async function nodesOf(
  client: ExistingCluster,
  { clock, name, timeouts }: LinkParts,
): Promise<readonly string[]> {
  const deadline = clock.now() + timeouts.connect
  for (;;) {
    const isReady = client.isReady()
    if (isReady) return client.nodes()
    const isClosed = isReady === undefined
    if (isClosed || clock.now() > deadline)
      throw unreachable(
        name,
        new Error(`the client is ${isClosed ? 'not connected: connect it first' : 'connecting'}`),
      )
    await pause(LOOK, clock)
  }
}
