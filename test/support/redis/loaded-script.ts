import type { CallArguments } from '../../../src/engines/redis/call.js'
import type { Reply } from '../../../src/engines/redis/clients/connection.js'
import { answersIn } from '../../../src/engines/redis/script-calls.js'
import type { RedisServer } from '../servers/redis.js'

/** A script that was sent to a server once, so that calls only name it. */
export class LoadedScript {
  readonly #server: RedisServer
  readonly #sha: string

  private constructor(server: RedisServer, sha: string) {
    this.#server = server
    this.#sha = sha
  }

  static async load(server: RedisServer, text: string): Promise<LoadedScript> {
    return new LoadedScript(server, String(await server.command('SCRIPT', 'LOAD', text)))
  }

  /** The answers to the operations, and last the hints. */
  async run(call: CallArguments): Promise<readonly Reply[]> {
    return answersIn((await this.#server.command(...call.command('EVALSHA', this.#sha))) as Reply)
  }

  /** The answer of another script. */
  async on(keys: readonly string[], ...words: readonly string[]): Promise<unknown> {
    return this.#server.command('EVALSHA', this.#sha, keys.length, ...keys, ...words)
  }
}
