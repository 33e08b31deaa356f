import type { ClusterTopology } from './cluster-topology.js'
import { RedisReplyError, type Connect } from './connection.js'
import { unreachable } from './failures.js'
import type { LinkParts } from './redis-link.js'
import { subscribeOnce, Subscriptions } from './subscriptions.js'

/** Maximum number of nodes that are tried for the subscription to a channel. */
const MAX_NODES = 5

export interface ClusterSubscriptionsParts extends LinkParts {
  readonly topology: ClusterTopology
  readonly connect: (node: string) => Connect
}

/** Sharded channels: each is subscribed at the master of its slot, over one connection for each such master. */
export class ClusterSubscriptions {
  readonly #parts: ClusterSubscriptionsParts
  readonly #nodes = new Map<string, Subscriptions>()
  /** The subscription to each channel, which settles when it has begun. */
  readonly #channels = new Map<string, Promise<void>>()
  /** The node at which each channel is subscribed; undefined while it moves to another node. */
  readonly #homes = new Map<string, string | undefined>()
  #hasNews = false
  #isMoving = false

  constructor(parts: ClusterSubscriptionsParts) {
    this.#parts = parts
  }

  /** As {@link RedisLink.subscribe} says. */
  subscribe(channel: string): Promise<void> {
    return subscribeOnce(this.#channels, channel, () => this.#enter(channel))
  }

  /** As {@link RedisLink.unsubscribe} says. */
  async unsubscribe(channel: string): Promise<void> {
    const home = this.#homes.get(channel)
    this.#channels.delete(channel)
    this.#homes.delete(channel)
    if (home !== undefined) await this.#nodes.get(home)?.unsubscribe(channel)
  }

  /** Moves channels to the current masters of their slots. */
  follow(): void {
    this.#hasNews = true
    if (!this.#isMoving) void this.#moveAll()
  }

  close(): void {
    for (const node of this.#nodes.values()) node.close()
    this.#nodes.clear()
    this.#channels.clear()
    this.#homes.clear()
  }

  async #enter(channel: string, tries = MAX_NODES): Promise<void> {
    const { name, topology } = this.#parts
    const home = topology.masterOf(channel)
    try {
      if (home === undefined) throw new RedisReplyError('MOVED')
      await this.#at(home).subscribe(channel)
      if (this.#channels.has(channel)) this.#homes.set(channel, home)
    } catch (error) {
      const isMoved = error instanceof RedisReplyError && error.code === 'MOVED'
      if (!isMoved || tries === 0) {
        topology.lookSoon()
        throw isMoved ? unreachable(name, error) : error
      }
      await topology.look()
      await this.#enter(channel, tries - 1)
    }
  }

  async #moveAll(): Promise<void> {
    this.#isMoving = true
    while (this.#hasNews) {
      this.#hasNews = false
      await this.#move()
    }
    this.#isMoving = false
  }

  async #move(): Promise<void> {
    const { listener, topology } = this.#parts
    const strayed = [...this.#homes].filter(([channel, home]) => home !== topology.masterOf(channel))
    const moves = strayed.map(async ([channel, home]) => {
      if (home !== undefined) this.#nodes.get(home)?.forget(channel)
      this.#homes.set(channel, undefined)
      const next = topology.masterOf(channel)
      if (next === undefined) return false
      await this.#at(next).subscribe(channel)
      if (this.#channels.has(channel)) this.#homes.set(channel, next)
      else await this.#at(next).unsubscribe(channel)
      return true
    })
    const outcomes = await Promise.allSettled(moves)
    if (outcomes.some(outcome => outcome.status === 'fulfilled' && outcome.value)) listener.resubscribed()
    if (outcomes.some(outcome => outcome.status === 'rejected' || !outcome.value)) topology.lookSoon()
    const masters = new Set(topology.masters)
    for (const [node, subscriptions] of this.#nodes) {
      if (masters.has(node) || subscriptions.isUsed) continue
      subscriptions.close()
      this.#nodes.delete(node)
    }
  }

  #at(node: string): Subscriptions {
    const known = this.#nodes.get(node)
    if (known !== undefined) return known
    const { connect, name, topology } = this.#parts
    const subscriptions = new Subscriptions({
      ...this.#parts,
      name: `${name} (${node})`,
      connect: connect(node),
      sharded: true,
      // The slot may have moved to another node with its channels, or the node may be down permanently.
      failed: () => topology.lookSoon(),
    })
    this.#nodes.set(node, subscriptions)
    return subscriptions
  }
}
