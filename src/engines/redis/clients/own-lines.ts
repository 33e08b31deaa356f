import type { Clock } from '../../../clock.js'
import type { ClusterLines } from './cluster-link.js'
import type { ClusterAnswer } from './cluster-topology.js'
import type { CommandLine } from './command-line.js'
import type { Connect, Patience } from './connection.js'
import { LastingConnection } from './lasting-connection.js'
import { placeOf } from './node-address.js'
import { seeThatItServes } from './own-server.js'

/** A line to a node that serves no slot is closed when it was not used for so long: milliseconds. */
const IDLE = 60_000

const LOOK = ['CLUSTER', 'SLOTS']

/** What lines over connections of their own are made of. */
export interface OwnLinesParts {
  readonly name: string
  readonly connect: (node: string) => Connect
  /** Told when a connection was lost, and after each vain try to get the next. */
  readonly failed: () => void
  readonly clock: Clock
  readonly patience: Patience
}

interface OwnLine {
  readonly connection: LastingConnection
  lastUse: number
}

/** One connection to each node, made when it is first needed. */
export class OwnLines implements ClusterLines {
  readonly #parts: OwnLinesParts
  readonly #lines = new Map<string, OwnLine>()
  #epoch = 0
  #isClosed = false

  constructor(parts: OwnLinesParts) {
    this.#parts = parts
  }

  get epoch(): number {
    return this.#epoch
  }

  to(node: string): CommandLine {
    const now = this.#parts.clock.now()
    const known = this.#lines.get(node)
    if (known !== undefined) {
      known.lastUse = now
      return known.connection
    }
    const connection = this.#make(node)
    if (this.#isClosed) connection.close()
    else this.#lines.set(node, { connection, lastUse: now })
    return connection
  }

  /** Whether there is a line to a node, though it may be down. */
  has(node: string): boolean {
    return this.#lines.has(node)
  }

  /** Asks the nodes that are connected, or else the seeds and all that were known, and takes the first answer. */
  async ask(seeds: readonly string[]): Promise<ClusterAnswer> {
    const connected = [...this.#lines].filter(([, { connection }]) => connection.isReady)
    try {
      return await Promise.any(connected.map(([node, { connection }]) => answerOf(node, connection)))
    } catch {
      const nodes = new Set([...this.#lines.keys(), ...seeds])
      return Promise.any([...nodes].map(node => this.#askOnce(node)))
    }
  }

  /** Closes what has not been needed for long. */
  follow(masters: readonly string[]): void {
    const now = this.#parts.clock.now()
    for (const [node, { connection, lastUse }] of this.#lines) {
      if (masters.includes(node) || now - lastUse < IDLE) continue
      connection.close()
      this.#lines.delete(node)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { connection } of this.#lines.values()) connection.close()
    this.#lines.clear()
  }

  async #askOnce(node: string): Promise<ClusterAnswer> {
    const connection = this.#make(node)
    try {
      await connection.connect()
      return await answerOf(node, connection)
    } finally {
      connection.close()
    }
  }

  #make(node: string): LastingConnection {
    const { clock, connect, failed, name, patience } = this.#parts
    return new LastingConnection({
      name: `${name} (${node})`,
      connect: connect(node),
      prepare: seeThatItServes,
      ready: isFirst => {
        if (!isFirst) this.#epoch++
      },
      failed,
      clock,
      patience,
    })
  }
}

/** What a node says of the cluster. */
export async function answerOf(node: string, line: CommandLine): Promise<ClusterAnswer> {
  return { host: placeOf(node).host, slots: await line.send(LOOK) }
}
