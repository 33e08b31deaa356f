import type { Clock } from '../../../clock.js'
import { ClusterLink } from './cluster-link.js'
import { ClusterSubscriptions } from './cluster-subscriptions.js'
import { ClusterTopology } from './cluster-topology.js'
import type { Patience } from './connection.js'
import type { GivenCluster, GivenServer } from './given-client.js'
import { GivenLine } from './given-line.js'
import { GivenLines } from './given-lines.js'
import type { LinkListener } from './redis-link.js'
import { ServerLink } from './server-link.js'
import { Subscriptions } from './subscriptions.js'

/** A link over a client of the caller's: its connection for commands, and one more for messages. */
export function givenServer(
  given: GivenServer,
  listener: LinkListener,
  clock: Clock,
  patience: Patience,
): ServerLink {
  const { connect, name } = given
  const shared = { name, clock, patience }
  return new ServerLink(
    name,
    new GivenLine({ ...shared, client: given }),
    new Subscriptions({ ...shared, connect, sharded: false, listener }),
  )
}

/** A link over a cluster client of the caller's: its connections for commands, and one more a master for messages. */
export function givenCluster(
  given: GivenCluster,
  listener: LinkListener,
  clock: Clock,
  patience: Patience,
): ClusterLink {
  const { name } = given
  const lines = new GivenLines(given, () => topology.lookSoon(), clock, patience)
  const topology: ClusterTopology = new ClusterTopology(
    () => lines.ask(),
    node => given.rename(node),
    () => {
      lines.follow(topology.masters)
      subscriptions.follow()
    },
    clock,
  )
  const connect = given.connect.bind(given)
  const subscriptions = new ClusterSubscriptions({ name, topology, connect, listener, clock, patience })
  return new ClusterLink({ name, topology, lines, subscriptions, clock, patience })
}
