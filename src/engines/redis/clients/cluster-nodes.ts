import type { ClusterAnswer } from './cluster-topology.js'
import { placeOf, type Connect } from './connection.js'
import { ReconnectingConnection } from './reconnecting-connection.js'
import type { LinkParts } from './redis-link.js'

/** Idle time after which the connections to a node without slots are closed, in milliseconds. */
const IDLE = 60_000

const LOOK = ['CLUSTER', 'SLOTS']

/** Finds the nodes of a cluster and connects to them. They are named by `host:port`. */
export interface ClusterAccess {
  /** Some of the nodes. Each of them can name the others. */
  seeds(): Promise<readonly string[]>
  /** Returns the address of a node from here, by its address within the cluster. */
  rename(node: string): string
  connect(node: string): Connect
}

export interface ClusterNodesParts extends LinkParts {
  readonly access: ClusterAccess
  /** Called when a connection was lost, and after each failed attempt to reconnect. */
  readonly failed: () => void
}

interface Node {
  readonly commands: ReconnectingConnection
  lastUse: number
}

/** Sends commands to the nodes of a cluster. */
export class ClusterNodes {
  readonly #parts: ClusterNodesParts
  readonly #nodes = new Map<string, Node>()
  #isClosed = false

  constructor(parts: ClusterNodesParts) {
    this.#parts = parts
  }

  get epoch(): number {
    return [...this.#nodes.values()].reduce((sum, { commands: { epoch } }) => sum + Math.max(0, epoch - 1), 0)
  }

  /**
   * Returns the sender of commands to a node. It stays the same as long as possible, so that commands keep their order.
   */
  to(node: string): ReconnectingConnection {
    const known = this.#nodes.get(node) ?? { commands: this.#make(node), lastUse: 0 }
    known.lastUse = this.#parts.clock.now()
    if (this.#isClosed) known.commands.close()
    else this.#nodes.set(node, known)
    return known.commands
  }

  /**
   * Asks the connected nodes for the slots. If none answers, asks the seeds and all known nodes. Returns the first
   * answer.
   */
  async ask(): Promise<ClusterAnswer> {
    const connected = [...this.#nodes].filter(([, { commands }]) => commands.epoch > 0)
    try {
      return await Promise.any(connected.map(([node, { commands }]) => answerOf(node, commands)))
    } catch {
      const nodes = new Set([...this.#nodes.keys(), ...(await this.#parts.access.seeds())])
      return Promise.any([...nodes].map(node => this.#askOnce(node)))
    }
  }

  /** Closes the connections to nodes that are not masters and have been idle for long. */
  follow(masters: readonly string[]): void {
    const now = this.#parts.clock.now()
    for (const [node, { commands, lastUse }] of this.#nodes) {
      if (masters.includes(node) || now - lastUse < IDLE) continue
      commands.close()
      this.#nodes.delete(node)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { commands } of this.#nodes.values()) commands.close()
    this.#nodes.clear()
  }

  async #askOnce(node: string): Promise<ClusterAnswer> {
    const commands = this.#make(node)
    try {
      await commands.connect()
      return await answerOf(node, commands)
    } finally {
      commands.close()
    }
  }

  #make(node: string): ReconnectingConnection {
    const { access, name } = this.#parts
    const connect = access.connect(node)
    return new ReconnectingConnection({
      ...this.#parts,
      name: `${name} (${node})`,
      connect,
    })
  }
}

/** Asks a node for the slots. */
async function answerOf(node: string, commands: ReconnectingConnection): Promise<ClusterAnswer> {
  return { host: placeOf(node).host, slots: await commands.send(LOOK) }
}
