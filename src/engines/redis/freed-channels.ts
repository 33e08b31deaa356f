import type { RedisLink } from './clients/redis-link.js'

/** Listens to foreign clients that announce freed keys, while a request waits for the key right behind them. */
export class FreedChannels {
  readonly #link: RedisLink
  readonly #waiting = new Map<string, Set<string>>()

  constructor(link: RedisLink) {
    this.#link = link
  }

  /** From now on the request waits for a message on this channel. */
  add(channel: string, id: string): void {
    const known = this.#waiting.get(channel)
    if (known) return void known.add(id)
    this.#waiting.set(channel, new Set([id]))
    // A missed message is made up for by looking again.
    this.#link.subscribe(channel).catch(() => undefined)
  }

  remove(channel: string, id: string): void {
    const known = this.#waiting.get(channel)
    if (!known?.delete(id) || known.size > 0) return
    this.#waiting.delete(channel)
    this.#link.unsubscribe(channel).catch(() => undefined)
  }

  /** The requests that wait for a message on this channel; undefined for another channel. */
  waiting(channel: string): readonly string[] | undefined {
    const known = this.#waiting.get(channel)
    return known && [...known]
  }
}
