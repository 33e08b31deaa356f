import { UnavailableError } from '../../../base/errors.js'
import { pause } from '../../../base/pause.js'
import { ClusterNodes, type ClusterAccess } from './cluster-nodes.js'
import { ClusterSubscriptions } from './cluster-subscriptions.js'
import { ClusterTopology } from './cluster-topology.js'
import { placeOf, RedisReplyError, type Reply } from './connection.js'
import { unreachable, unsent } from './failures.js'
import type { Answered, LinkParts, RedisLink } from './redis-link.js'

/** Maximum number of redirections that a command follows. */
const MAX_REDIRECTIONS = 16
/** Delay before a command whose keys are being migrated to another node is retried, in milliseconds. */
const TRY_AGAIN = 20

/** A link to the masters of a cluster. Commands follow their slots from node to node, also during live migrations. */
export class ClusterLink implements RedisLink {
  readonly name: string
  readonly cluster = true
  readonly #parts: LinkParts
  readonly #topology: ClusterTopology
  readonly #nodes: ClusterNodes
  readonly #subscriptions: ClusterSubscriptions

  constructor(parts: LinkParts, access: ClusterAccess) {
    this.name = parts.name
    this.#parts = parts
    this.#topology = new ClusterTopology(
      () => this.#nodes.ask(),
      node => access.rename(node),
      () => {
        this.#nodes.follow(this.#topology.masters)
        this.#subscriptions.follow()
      },
      parts.clock,
    )
    this.#nodes = new ClusterNodes({ ...parts, access, failed: () => this.#topology.lookSoon() })
    const connect = access.connect.bind(access)
    this.#subscriptions = new ClusterSubscriptions({ ...parts, topology: this.#topology, connect })
  }

  get epoch(): number {
    return this.#nodes.epoch
  }

  connect(): Promise<void> {
    return this.#reached(async () => {
      await this.#topology.look()
      // One master may be down while the others work. The cluster is examined again when its slots are needed.
      await Promise.any(this.#topology.masters.map(node => this.#nodes.to(node).connect()))
    })
  }

  async command(route: string, args: readonly string[]): Promise<Reply> {
    return (await this.call(route, args)).reply
  }

  async call(route: string, args: readonly string[]): Promise<Answered> {
    const { clock, timeouts } = this.#parts
    const deadline = clock.now() + timeouts.answer
    let node = this.#topology.masterOf(route)
    let commands = [args]
    for (let redirections = 0; ; redirections++) {
      if (node === undefined) {
        this.#topology.lookSoon()
        return unsent(unreachable(this.name, new Error('no master serves the slot')))
      }
      try {
        return await this.#send(node, commands)
      } catch (error) {
        const redirection = redirectionOf(error, node)
        if (redirection === undefined || redirections >= MAX_REDIRECTIONS || clock.now() >= deadline)
          throw error
        if (redirection.kind === 'TRYAGAIN') {
          await pause(TRY_AGAIN, clock)
          continue
        }
        const { kind, slot } = redirection
        node = this.#topology.redirected(slot, redirection.node, kind === 'MOVED')
        // mutant: sent-on-without-asking
        commands = kind === 'ASK' ? [['ASKING'], args] : [args]
      }
    }
  }

  async masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]> {
    // SCAN is never redirected, so all masters must be known.
    await this.#reached(() => this.#topology.look())
    return this.#topology.masters.map(node => async args => (await this.#send(node, [args])).reply)
  }

  subscribe(channel: string): Promise<void> {
    return this.#subscriptions.subscribe(channel)
  }

  unsubscribe(channel: string): Promise<void> {
    return this.#subscriptions.unsubscribe(channel)
  }

  async close(): Promise<void> {
    this.#topology.close()
    this.#nodes.close()
    this.#subscriptions.close()
  }

  /** Runs a task that needs an answer of any node. @throws UnavailableError when none answers */
  async #reached(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error
      throw cause instanceof UnavailableError ? cause : unreachable(this.name, cause)
    }
  }

  async #send(node: string, commands: readonly (readonly string[])[]): Promise<Answered> {
    const server = this.#nodes.to(node)
    try {
      if (server.epoch === 0) await server.connect()
      else if (server.reconnecting) await server.reconnecting
      const { epoch } = server
      return { reply: await server.send(...commands), server, epoch }
    } catch (error) {
      // A master may have been replaced if it can't be reached, or if it reports that the cluster is down.
      const isDown = error instanceof RedisReplyError && error.code === 'CLUSTERDOWN'
      if (isDown || error instanceof UnavailableError) this.#topology.lookSoon()
      throw error
    }
  }
}

/** A redirection of a command to another node of a cluster. */
interface Redirection {
  /**
   * MOVED: permanently. ASK: for this command only. TRYAGAIN: the keys are being migrated; ask the same node a little
   * later.
   */
  readonly kind: 'MOVED' | 'ASK' | 'TRYAGAIN'
  readonly slot: number
  readonly node: string
}

/**
 * Parses the redirection in an error; undefined for other errors.
 * @param asked the node that has redirected. If it does not know the host of the other node, it gives only the port,
 * and the host is its own.
 */
export function redirectionOf(error: unknown, asked: string): Redirection | undefined {
  if (!(error instanceof RedisReplyError)) return undefined
  const { code: kind, message } = error
  if (kind === 'TRYAGAIN') return { kind, slot: -1, node: asked }
  if (kind !== 'MOVED' && kind !== 'ASK') return undefined
  const [, slot, node = ''] = message.split(' ')
  return { kind, slot: Number(slot), node: node.lastIndexOf(':') === 0 ? placeOf(asked).host + node : node }
}
