import type { Clock } from '../../../clock.js'
import type { Connect, Connection, Patience } from './connection.js'
import { LastingConnection } from './lasting-connection.js'
import type { LinkListener, RedisLink, Reply } from './redis-link.js'
import { Subscriptions } from './subscriptions.js'

/** What a link to one server is made of. */
export interface ServerLinkParts {
  readonly name: string
  readonly connect: Connect
  readonly listener: LinkListener
  readonly clock: Clock
  readonly patience: Patience
}

/** A link to one server over connections of its own: one for commands, and one for messages from the first channel on. */
export class ServerLink implements RedisLink {
  readonly name: string
  readonly cluster = false
  readonly #commands: LastingConnection
  readonly #subscriptions: Subscriptions

  constructor({ name, connect, listener, clock, patience }: ServerLinkParts) {
    this.name = name
    const shared = { name, connect, clock, patience }
    this.#commands = new LastingConnection({ ...shared, prepare: seeThatItServes })
    this.#subscriptions = new Subscriptions({ ...shared, sharded: false, listener })
  }

  get epoch(): number {
    return this.#commands.epoch
  }

  connect(): Promise<void> {
    return this.#commands.connect()
  }

  command(_route: string, args: readonly string[]): Promise<Reply> {
    return this.#commands.send(args)
  }

  async masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]> {
    return [args => this.#commands.send(args)]
  }

  subscribe(channel: string): Promise<void> {
    return this.#subscriptions.subscribe(channel)
  }

  unsubscribe(channel: string): Promise<void> {
    return this.#subscriptions.unsubscribe(channel)
  }

  async close(): Promise<void> {
    this.#commands.close()
    this.#subscriptions.close()
  }
}

/** Rejects when the server wants a password, still loads its data, or has lost its master. */
export async function seeThatItServes(connection: Connection): Promise<void> {
  await connection.send(['PING'])
}
