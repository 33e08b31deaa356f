import type { Connect, Reply } from './connection.js'
import { ReconnectingConnection } from './reconnecting-connection.js'
import type { Answered, LinkParts, RedisLink } from './redis-link.js'
import { Subscriptions } from './subscriptions.js'

/** A link to one server: one connection for commands, and one for messages, which the first channel opens. */
export class ServerLink implements RedisLink {
  readonly name: string
  readonly cluster = false
  readonly #commands: ReconnectingConnection
  readonly #subscriptions: Subscriptions

  constructor(parts: LinkParts, connect: Connect) {
    this.name = parts.name
    const demoted = (): void => this.#subscriptions.reconnect(new Error('the server is no longer the master'))
    this.#commands = new ReconnectingConnection({ ...parts, connect, demoted })
    this.#subscriptions = new Subscriptions({ ...parts, connect, sharded: false })
  }

  get epoch(): number {
    return this.#commands.epoch
  }

  connect(): Promise<void> {
    return this.#commands.connect()
  }

  async command(route: string, args: readonly string[]): Promise<Reply> {
    return (await this.call(route, args)).reply
  }

  async call(_route: string, args: readonly string[]): Promise<Answered> {
    const server = this.#commands
    if (server.reconnecting) await server.reconnecting
    const { epoch } = server
    return { reply: await server.send(args), server, epoch }
  }

  async masters(): Promise<readonly ((args: readonly string[]) => Promise<Reply>)[]> {
    return [args => this.command('', args)]
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
