import type { RedisLink } from './clients/redis-link.js'

/** Hears foreign clients tell that they have freed a key, as long as a request waits for it right behind them. */
export class FreedChannels {
  readonly #link: RedisLink
  readonly #waiting = new Map<string, Set<string>>()

  constructor(link: RedisLink) {
    this.#link = link
  }

  /** From now on the request waits for what this channel tells. */
  add(channel: string, id: string): void {
    const known = this.#waiting.get(channel)
    if (known) return void known.add(id)
    this.#waiting.set(channel, new Set([id]))
    // What is not heard is found by looking again.
    this.#link.subscribe(channel).catch(() => undefined)
  }

  remove(channel: string, id: string): void {
    const known = this.#waiting.get(channel)
    if (!known?.delete(id) || known.size > 0) return
    this.#waiting.delete(channel)
    this.#link.unsubscribe(channel).catch(() => undefined)
  }

  /** The requests that wait for what this channel tells; undefined when it is none of these. */
  waiting(channel: string): readonly string[] | undefined {
    const known = this.#waiting.get(channel)
    return known && [...known]
  }
}
