import type { Reply } from './connection.js'
import { unreachable, unsent } from './failures.js'
import type { Answered, LinkListener, LinkMaker, RedisLink } from './redis-link.js'

/** The shared links in use, by their keys. */
const inUse = new Map<unknown, SharedLink>()

export interface SharedLinkParts {
  /** Identifies the servers, the user and the password, or the client: links with the same key share connections. */
  readonly key: unknown
  readonly name: string
  readonly cluster: boolean
  /** Creates the shared link. */
  readonly make: LinkMaker
}

/**
 * Makes links that share the connections of one link. Commands of one tick, also of several boxes, share one write to
 * the socket, which costs more than a call. The first link that connects opens the connections, and the last one closes
 * them.
 */
export function sharedLink(parts: SharedLinkParts): LinkMaker {
  return listener => new LinkUse(parts, listener)
}

/** The link that several engines share. Sends each of them the messages of its channels. */
class SharedLink {
  readonly link: RedisLink
  readonly users = new Set<LinkListener>()
  readonly #key: unknown
  readonly #subscribers = new Map<string, Set<LinkListener>>()

  constructor({ key, make }: SharedLinkParts) {
    this.#key = key
    this.link = make({
      message: (channel, text) => {
        for (const listener of [...(this.#subscribers.get(channel) ?? [])]) listener.message(channel, text)
      },
      resubscribed: () => {
        for (const listener of [...this.users]) listener.resubscribed()
      },
    })
    inUse.set(key, this)
  }

  leave(listener: LinkListener): void {
    this.users.delete(listener)
    if (this.users.size === 0) {
      inUse.delete(this.#key)
      void this.link.close()
      return
    }
    for (const channel of [...this.#subscribers.keys()])
      this.unsubscribe(channel, listener).catch(() => undefined)
  }

  subscribe(channel: string, listener: LinkListener): Promise<void> {
    const known = this.#subscribers.get(channel)
    if (known) known.add(listener)
    else this.#subscribers.set(channel, new Set([listener]))
    return this.link.subscribe(channel)
  }

  async unsubscribe(channel: string, listener: LinkListener): Promise<void> {
    const known = this.#subscribers.get(channel)
    if (!known?.delete(listener) || known.size > 0) return
    this.#subscribers.delete(channel)
    await this.link.unsubscribe(channel)
  }
}

/** The link of one engine, which uses a shared link once it has connected. */
class LinkUse implements RedisLink {
  readonly name: string
  readonly cluster: boolean
  readonly #parts: SharedLinkParts
  readonly #listener: LinkListener
  #shared: SharedLink | undefined
  #isClosed = false

  constructor(parts: SharedLinkParts, listener: LinkListener) {
    this.name = parts.name
    this.cluster = parts.cluster
    this.#parts = parts
    this.#listener = listener
  }

  get epoch(): number {
    return this.#shared?.link.epoch ?? 0
  }

  async connect(): Promise<void> {
    if (!this.#shared && !this.#isClosed) {
      this.#shared = inUse.get(this.#parts.key) ?? new SharedLink(this.#parts)
      this.#shared.users.add(this.#listener)
    }
    try {
      await this.#shared?.link.connect()
    } catch (error) {
      this.#leave()
      throw error
    }
    if (this.#isClosed) return this.#closed()
  }

  command(route: string, args: readonly string[]): Promise<Reply> {
    return this.#shared?.link.command(route, args) ?? this.#closed()
  }

  call(route: string, args: readonly string[]): Promise<Answered> {
    return this.#shared?.link.call(route, args) ?? this.#closed()
  }

  masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]> {
    return this.#shared?.link.masters() ?? this.#closed()
  }

  subscribe(channel: string): Promise<void> {
    return this.#shared?.subscribe(channel, this.#listener) ?? this.#closed()
  }

  async unsubscribe(channel: string): Promise<void> {
    await this.#shared?.unsubscribe(channel, this.#listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#leave()
  }

  #closed(): Promise<never> {
    return unsent(unreachable(this.name, new Error('the link was closed')))
  }

  #leave(): void {
    this.#shared?.leave(this.#listener)
    this.#shared = undefined
  }
}
