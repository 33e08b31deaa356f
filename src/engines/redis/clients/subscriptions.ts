import type { Timer } from '../../../base/clock.js'
import type { Connect, Connection } from './connection.js'
import { ReconnectingConnection } from './reconnecting-connection.js'
import type { LinkParts } from './redis-link.js'

export interface SubscriptionsParts extends LinkParts {
  readonly connect: Connect
  readonly sharded: boolean
  /** Called when a connection was lost, and after each failed attempt to reconnect. */
  readonly failed?: () => void
}

/** Subscribes to channels over one connection, which the first subscription opens. */
export class Subscriptions {
  readonly #parts: SubscriptionsParts
  readonly #connection: ReconnectingConnection
  /** The subscription to each channel, which settles when it has begun. */
  readonly #channels = new Map<string, Promise<void>>()
  /** The channels whose subscriptions have begun. */
  readonly #subscribed = new Set<string>()
  #heartbeat: Timer | undefined

  constructor(parts: SubscriptionsParts) {
    this.#parts = parts
    this.#connection = new ReconnectingConnection({
      ...parts,
      prepare: connection => this.#prepare(connection),
      ready: isFirst => {
        // mutant: silent-subscription
        this.#beat()
        // mutant: break-without-report
        if (!isFirst) parts.listener.resubscribed()
      },
      message: (channel, text) => {
        if (this.#channels.has(channel)) parts.listener.message(channel, text)
      },
    })
  }

  /** As {@link RedisLink.subscribe} says. Rejects with the code MOVED when the channel is at another node. */
  subscribe(channel: string): Promise<void> {
    return subscribeOnce(this.#channels, channel, () => this.#enter(channel))
  }

  /** As {@link RedisLink.unsubscribe} says. */
  async unsubscribe(channel: string): Promise<void> {
    if (!this.forget(channel) || !this.#connection.isReady) return
    await this.#connection.with(connection => connection.unsubscribe(channel, this.#parts.sharded))
  }

  /** Whether any channel is subscribed, or about to be. */
  get isUsed(): boolean {
    return this.#channels.size > 0
  }

  /** Forgets a channel, without a command to the server. @returns whether it was subscribed */
  forget(channel: string): boolean {
    this.#subscribed.delete(channel)
    return this.#channels.delete(channel)
  }

  /** Subscribes again over another connection, because another server may publish now. */
  reconnect(cause: unknown): void {
    this.#connection.drop(cause)
  }

  close(): void {
    this.#heartbeat?.cancel()
    this.#connection.close()
  }

  async #enter(channel: string): Promise<void> {
    await this.#connection.connect()
    await this.#connection.with(connection => connection.subscribe(channel, this.#parts.sharded))
    if (this.#channels.has(channel)) this.#subscribed.add(channel)
  }

  async #prepare(connection: Connection): Promise<void> {
    // mutant: channels-not-entered-again
    await Promise.all(
      [...this.#subscribed].map(channel => connection.subscribe(channel, this.#parts.sharded)),
    )
  }

  /** Sends regular pings: a connection that only listens does not notice by itself that the server is gone. */
  #beat(): void {
    this.#heartbeat?.cancel()
    const { clock, timeouts } = this.#parts
    const ask = (): void => {
      this.#connection.send(['PING']).then(
        () => this.#beat(),
        // The next connection starts again.
        () => undefined,
      )
    }
    this.#heartbeat = clock.after(timeouts.heartbeat, ask, false)
  }
}

/**
 * Subscribes to a channel unless that was done or is under way. A failed subscription can be retried.
 * @param channels the subscriptions, by channel.
 */
export function subscribeOnce(
  channels: Map<string, Promise<void>>,
  channel: string,
  enter: () => Promise<void>,
): Promise<void> {
  const known = channels.get(channel)
  if (known !== undefined) return known
  const entered = enter()
  channels.set(channel, entered)
  entered.catch(() => {
    if (channels.get(channel) === entered) channels.delete(channel)
  })
  return entered
}
