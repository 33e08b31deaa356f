import type { Connect, Reply } from './connection.js'
import { ExistingCommands } from './existing-commands.js'
import type { ExistingConnection } from './existing-client.js'
import { ReconnectingConnection, assertReady } from './reconnecting-connection.js'
import type { Answered, LinkParts, RedisLink, ServerCommands } from './redis-link.js'
import { Subscriptions } from './subscriptions.js'

/** A link to one server: one connection for commands, and one for messages, which the first channel opens. */
export class ServerLink implements RedisLink {
  readonly name: string
  readonly cluster = false
  readonly #commands: ServerCommands
  readonly #subscriptions: Subscriptions

  /** @param given the connection for the commands; without it they get a connection of their own. */
  constructor(parts: LinkParts, connect: Connect, given?: ExistingConnection) {
    this.name = parts.name
    const demoted = (): void => this.#subscriptions.reconnect(new Error('the server is no longer the master'))
    this.#commands = given
      ? new ExistingCommands({ ...parts, client: given, demoted })
      : new ReconnectingConnection({ ...parts, connect, prepare: assertReady, demoted })
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
