import type { Clock } from '../../../clock.js'
import { UnavailableError } from '../../../errors.js'
import type { ClusterSubscriptions } from './cluster-subscriptions.js'
import type { ClusterTopology } from './cluster-topology.js'
import type { CommandLine } from './command-line.js'
import type { Patience } from './connection.js'
import { unreachable, unsent } from './failures.js'
import { redirectionOf } from './redirection.js'
import type { Reply } from './command-line.js'
import type { Answered, RedisLink } from './redis-link.js'

/** So often a command follows a redirection before it fails. */
const MOST_REDIRECTIONS = 16
/** Until a command whose keys are on their way to another node is tried again: milliseconds. */
const TRY_AGAIN = 20

/** The lines to the nodes of a cluster, by `host:port`. */
export interface ClusterLines {
  /** How often a connection was made anew. */
  readonly epoch: number
  /** The line to a node, which is made when there is none. */
  to(node: string): CommandLine
  close(): void
}

/** What a link to a cluster is made of. */
export interface ClusterLinkParts {
  readonly name: string
  readonly topology: ClusterTopology
  readonly lines: ClusterLines
  readonly subscriptions: ClusterSubscriptions
  readonly clock: Clock
  readonly patience: Patience
}

/** A link to the masters of a cluster. Commands follow their slots from node to node, live migrations included. */
export class ClusterLink implements RedisLink {
  readonly name: string
  readonly cluster = true
  readonly #parts: ClusterLinkParts

  constructor(parts: ClusterLinkParts) {
    this.name = parts.name
    this.#parts = parts
  }

  get epoch(): number {
    return this.#parts.lines.epoch
  }

  async connect(): Promise<void> {
    const { lines, topology } = this.#parts
    try {
      await topology.look()
      // One master may be down while the others work; its slots are looked for when they are needed.
      await Promise.any(topology.masters.map(node => lines.to(node).connect()))
    } catch (error) {
      const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error
      throw cause instanceof UnavailableError ? cause : unreachable(this.name, cause)
    }
  }

  async command(route: string, args: readonly string[]): Promise<Reply> {
    return (await this.call(route, args)).reply
  }

  async call(route: string, args: readonly string[]): Promise<Answered> {
    const { clock, patience, topology } = this.#parts
    const deadline = clock.now() + patience.answer
    let node = topology.masterOf(route)
    let commands = [args]
    for (let redirections = 0; ; redirections++) {
      if (node === undefined) {
        topology.lookSoon()
        return unsent(unreachable(this.name, new Error('no master serves the slot')))
      }
      try {
        return await this.#send(node, commands)
      } catch (error) {
        const redirection = redirectionOf(error, node)
        if (redirection === undefined || redirections >= MOST_REDIRECTIONS || clock.now() >= deadline)
          throw error
        if (redirection.kind === 'TRYAGAIN') {
          await new Promise<void>(resolve => clock.after(TRY_AGAIN, resolve, true))
          continue
        }
        const { kind, slot } = redirection
        node = topology.redirected(slot, redirection.node, kind === 'MOVED')
        commands = kind === 'ASK' ? [['ASKING'], args] : [args]
      }
    }
  }

  async masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]> {
    return this.#parts.topology.masters.map(node => async args => (await this.#send(node, [args])).reply)
  }

  subscribe(channel: string): Promise<void> {
    return this.#parts.subscriptions.subscribe(channel)
  }

  unsubscribe(channel: string): Promise<void> {
    return this.#parts.subscriptions.unsubscribe(channel)
  }

  async close(): Promise<void> {
    const { lines, subscriptions, topology } = this.#parts
    topology.close()
    lines.close()
    subscriptions.close()
  }

  async #send(node: string, commands: readonly (readonly string[])[]): Promise<Answered> {
    const { lines, topology } = this.#parts
    const line = lines.to(node)
    try {
      if (line.epoch === 0) await line.connect()
      const { epoch } = line
      return { reply: await line.send(...commands), line, epoch }
    } catch (error) {
      // A master that can't be reached may have been replaced.
      if (error instanceof UnavailableError) topology.lookSoon()
      throw error
    }
  }
}
