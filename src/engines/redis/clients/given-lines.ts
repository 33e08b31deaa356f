import type { Clock } from '../../../clock.js'
import type { ClusterLines } from './cluster-link.js'
import type { ClusterAnswer } from './cluster-topology.js'
import type { CommandLine } from './command-line.js'
import type { Patience } from './connection.js'
import type { GivenCluster, GivenServer } from './given-client.js'
import { GivenLine, untilReady } from './given-line.js'
import { answerOf, OwnLines } from './own-lines.js'

/**
 * The connections of a cluster client of the caller's. A node that it has no connection to gets one of ours: some
 * clients find a new master only after long, or never.
 */
export class GivenLines implements ClusterLines {
  readonly #given: GivenCluster
  readonly #clock: Clock
  readonly #patience: Patience
  readonly #own: OwnLines
  readonly #lines = new WeakMap<GivenServer, GivenLine>()

  /** @param failed told when a connection of ours was lost, and after each vain try to get the next */
  constructor(given: GivenCluster, failed: () => void, clock: Clock, patience: Patience) {
    this.#given = given
    this.#clock = clock
    this.#patience = patience
    const connect = given.connect.bind(given)
    this.#own = new OwnLines({ name: given.name, connect, failed, clock, patience })
  }

  get epoch(): number {
    const epochs = this.#given.nodes().map(node => this.#given.server(node)?.epoch ?? 0)
    return epochs.reduce((sum, epoch) => sum + epoch, this.#own.epoch)
  }

  to(node: string): CommandLine {
    const server = this.#given.server(node)
    // A node that was taken over by a connection of ours stays with it, so that its commands keep their order.
    if (server === undefined || this.#own.has(node)) return this.#own.to(node)
    const known = this.#lines.get(server)
    if (known !== undefined) return known
    const name = `${this.#given.name} (${node})`
    const line = new GivenLine({ name, client: server, clock: this.#clock, patience: this.#patience })
    this.#lines.set(server, line)
    return line
  }

  /** Asks all nodes that the client knows and takes the first answer. */
  async ask(): Promise<ClusterAnswer> {
    const { name } = this.#given
    await untilReady(this.#given, { name, clock: this.#clock, patience: this.#patience })
    return Promise.any(
      this.#given.nodes().map(async node => {
        const line = this.to(node)
        if (line.epoch === 0) await line.connect()
        return answerOf(node, line)
      }),
    )
  }

  /** Closes connections of ours that have not been needed for long. */
  follow(masters: readonly string[]): void {
    this.#own.follow(masters)
  }

  close(): void {
    this.#own.close()
  }
}
