import type { RedisLink } from './clients/redis-link.js'

/**
 * Subscribes to the channels on which foreign clients announce freed keys, while a request is the first waiter behind
 * such a client.
 */
export class FreedChannels {
  readonly #link: RedisLink
  readonly #waiting = new Map<string, Set<string>>()

  constructor(link: RedisLink) {
    this.#link = link
  }

  /** Adds a request that waits for messages on this channel. */
  add(channel: string, id: string): void {
    const known = this.#waiting.get(channel)
    if (known) return void known.add(id)
    this.#waiting.set(channel, new Set([id]))
    // The waiter checks in even without a message.
    this.#link.subscribe(channel).catch(() => undefined)
  }

  remove(channel: string, id: string): void {
    const known = this.#waiting.get(channel)
    if (!known?.delete(id) || known.size > 0) return
    this.#waiting.delete(channel)
    this.#link.unsubscribe(channel).catch(() => undefined)
  }

  /** The requests that wait for messages on this channel; undefined for another channel. */
  waiting(channel: string): readonly string[] | undefined {
    const known = this.#waiting.get(channel)
    return known && [...known]
  }
}
