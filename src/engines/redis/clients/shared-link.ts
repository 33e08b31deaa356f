import type { UnavailableError } from '../../../base/errors.js'
import type { Reply } from './connection.js'
import { unreachable, unsent } from './failures.js'
import type { Answered, LinkListener, LinkMaker, RedisLink } from './redis-link.js'

/** The links that are in use, by their keys. */
const inUse = new Map<string, Trunk>()

/** What a shared link is made of. */
export interface SharedLinkParts {
  /** Names the server or servers, the user and the password: links with the same key share their connections. */
  readonly key: string
  readonly name: string
  readonly cluster: boolean
  /** Makes the link that they share. */
  readonly make: LinkMaker
}

/**
 * Makes links that share the connections of one link. The commands that several boxes send in one tick are then one
 * write of the client and one read of the server, which take longer than a call of a script. Connections are opened for
 * the first link that connects, and closed with the last one.
 */
export function sharedLink(parts: SharedLinkParts): LinkMaker {
  return listener => new Branch(parts, listener)
}

/** The link that several engines share. Sends each of them the messages of its channels. */
class Trunk {
  readonly link: RedisLink
  readonly #key: string
  readonly #branches = new Set<LinkListener>()
  readonly #subscribers = new Map<string, Set<LinkListener>>()

  constructor({ key, make }: SharedLinkParts) {
    this.#key = key
    this.link = make({
      message: (channel, text) => {
        for (const listener of [...(this.#subscribers.get(channel) ?? [])]) listener.message(channel, text)
      },
      resubscribed: () => {
        for (const listener of [...this.#branches]) listener.resubscribed()
      },
    })
    inUse.set(key, this)
  }

  enter(listener: LinkListener): void {
    this.#branches.add(listener)
  }

  leave(listener: LinkListener): void {
    this.#branches.delete(listener)
    if (this.#branches.size === 0) {
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

/** The use of a shared link by one engine, from when it connects. */
class Branch implements RedisLink {
  readonly #parts: SharedLinkParts
  readonly #listener: LinkListener
  #trunk: Trunk | undefined
  #isClosed = false

  constructor(parts: SharedLinkParts, listener: LinkListener) {
    this.#parts = parts
    this.#listener = listener
  }

  get name(): string {
    return this.#parts.name
  }

  get cluster(): boolean {
    return this.#parts.cluster
  }

  get epoch(): number {
    return this.#trunk?.link.epoch ?? 0
  }

  async connect(): Promise<void> {
    if (!this.#trunk && !this.#isClosed) {
      this.#trunk = inUse.get(this.#parts.key) ?? new Trunk(this.#parts)
      this.#trunk.enter(this.#listener)
    }
    try {
      await this.#trunk?.link.connect()
    } catch (error) {
      this.#leave()
      throw error
    }
    if (this.#isClosed) return unsent(this.#closed())
  }

  command(route: string, args: readonly string[]): Promise<Reply> {
    return this.#trunk?.link.command(route, args) ?? unsent(this.#closed())
  }

  call(route: string, args: readonly string[]): Promise<Answered> {
    return this.#trunk?.link.call(route, args) ?? unsent(this.#closed())
  }

  masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]> {
    return this.#trunk?.link.masters() ?? unsent(this.#closed())
  }

  subscribe(channel: string): Promise<void> {
    return this.#trunk?.subscribe(channel, this.#listener) ?? unsent(this.#closed())
  }

  async unsubscribe(channel: string): Promise<void> {
    await this.#trunk?.unsubscribe(channel, this.#listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#leave()
  }

  #closed(): UnavailableError {
    return unreachable(this.name, new Error('the link was closed'))
  }

  #leave(): void {
    this.#trunk?.leave(this.#listener)
    this.#trunk = undefined
  }
}
