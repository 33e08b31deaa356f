import type { Clock } from '../../../clock.js'
import { ClusterLink, type ClusterLines } from './cluster-link.js'
import { ClusterSubscriptions } from './cluster-subscriptions.js'
import { ClusterTopology, type ClusterAnswer } from './cluster-topology.js'
import type { CommandLine } from './command-line.js'
import type { Patience } from './connection.js'
import type { GivenCluster, GivenServer } from './given-client.js'
import { GivenLine, untilReady } from './given-line.js'
import { placeOf } from './node-address.js'
import type { LinkListener } from './redis-link.js'
import { ServerLink } from './server-link.js'
import { Subscriptions } from './subscriptions.js'

const LOOK = ['CLUSTER', 'SLOTS']

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
    new GivenLine({ ...shared, find: () => given, seek: async () => given.wake() }),
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
  const lines = new GivenLines(given, node => topology.someKeyOf(node), clock, patience)
  const topology: ClusterTopology = new ClusterTopology(
    () => lines.ask(),
    node => given.rename(node),
    () => subscriptions.follow(),
    clock,
  )
  const connect = given.connect.bind(given)
  const subscriptions = new ClusterSubscriptions({ name, topology, connect, listener, clock, patience })
  return new ClusterLink({ name, topology, lines, subscriptions, clock, patience })
}

class GivenLines implements ClusterLines {
  readonly #given: GivenCluster
  readonly #someKeyOf: (node: string) => string
  readonly #clock: Clock
  readonly #patience: Patience
  readonly #lines = new Map<string, GivenLine>()

  constructor(given: GivenCluster, someKeyOf: (node: string) => string, clock: Clock, patience: Patience) {
    this.#given = given
    this.#someKeyOf = someKeyOf
    this.#clock = clock
    this.#patience = patience
  }

  get epoch(): number {
    return this.#given.nodes().reduce((sum, node) => sum + (this.#given.server(node)?.epoch ?? 0), 0)
  }

  to(node: string): CommandLine {
    const known = this.#lines.get(node)
    if (known !== undefined) return known
    const line = new GivenLine({
      name: `${this.#given.name} (${node})`,
      find: () => this.#given.server(node),
      seek: () => this.#given.seek(node, this.#someKeyOf(node)),
      clock: this.#clock,
      patience: this.#patience,
    })
    this.#lines.set(node, line)
    return line
  }

  /** Asks all nodes that the client knows and takes the first answer. */
  async ask(): Promise<ClusterAnswer> {
    const given = this.#given
    const parts = { name: given.name, clock: this.#clock, patience: this.#patience }
    await untilReady(
      () => given.standing,
      () => given.wake(),
      parts,
    )
    return Promise.any(
      given.nodes().map(async node => {
        const line = this.to(node)
        if (line.epoch === 0) await line.connect()
        return { host: placeOf(node).host, slots: await line.send(LOOK) }
      }),
    )
  }

  close(): void {
    // Everything belongs to the caller.
  }
}
