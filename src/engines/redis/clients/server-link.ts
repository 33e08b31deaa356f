import type { CommandLine } from './command-line.js'
import type { Reply } from './command-line.js'
import type { Answered, RedisLink } from './redis-link.js'
import type { Subscriptions } from './subscriptions.js'

/** A link to one server: a line for commands, and one connection for messages from the first channel on. */
export class ServerLink implements RedisLink {
  readonly name: string
  readonly cluster = false
  readonly #commands: CommandLine
  readonly #subscriptions: Subscriptions

  constructor(name: string, commands: CommandLine, subscriptions: Subscriptions) {
    this.name = name
    this.#commands = commands
    this.#subscriptions = subscriptions
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

  async call(_route: string, args: readonly string[]): Promise<Answered> {
    const line = this.#commands
    const { epoch } = line
    return { reply: await line.send(args), line, epoch }
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
