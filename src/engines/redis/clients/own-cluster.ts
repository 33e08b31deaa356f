import type { Clock } from '../../../clock.js'
import { ClusterLink } from './cluster-link.js'
import { ClusterSubscriptions } from './cluster-subscriptions.js'
import { ClusterTopology } from './cluster-topology.js'
import type { Address, Connect, NetworkAddress, Patience } from './connection.js'
import { nodeName, placeOf } from './node-address.js'
import { OwnLines } from './own-lines.js'
import type { LinkListener } from './redis-link.js'

/** What a link to a cluster over connections of its own is made of. */
export interface OwnClusterParts {
  readonly name: string
  /** Some nodes of the cluster. */
  readonly seeds: readonly NetworkAddress[]
  readonly connect: (address: Address) => Connect
  readonly listener: LinkListener
  readonly clock: Clock
  readonly patience: Patience
}

/** A link to a cluster: one connection to each master for commands, and one to each that has channels. */
export function ownCluster({
  name,
  seeds,
  connect,
  listener,
  clock,
  patience,
}: OwnClusterParts): ClusterLink {
  const { tls } = seeds[0]!
  const connectTo = (node: string): Connect => connect({ ...placeOf(node), tls })
  const lines = new OwnLines({ name, connect: connectTo, failed: () => topology.lookSoon(), clock, patience })
  const topology: ClusterTopology = new ClusterTopology(
    () => lines.ask(seeds.map(({ host, port }) => nodeName(host, port))),
    node => node,
    () => {
      lines.follow(topology.masters)
      subscriptions.follow()
    },
    clock,
  )
  const subscriptions = new ClusterSubscriptions({
    name,
    topology,
    connect: connectTo,
    listener,
    clock,
    patience,
  })
  return new ClusterLink({ name, topology, lines, subscriptions, clock, patience })
}
