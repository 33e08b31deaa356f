import type { CallArguments } from '../../../src/engines/redis/call.js'
import type { Reply } from '../../../src/engines/redis/clients/connection.js'
import { ServerCode } from '../../../src/engines/redis/lua/server-code.js'
import { answersIn } from '../../../src/engines/redis/table-calls.js'
import type { RedisServer } from '../servers/redis.js'

/** Code that was sent to a server once, so that calls only name it. */
export class LoadedCode {
  readonly #server: RedisServer
  readonly #command: readonly string[]

  private constructor(server: RedisServer, command: readonly string[]) {
    this.#server = server
    this.#command = command
  }

  /** Loads code as a function, which keeps its variables from call to call. */
  static async asFunction(server: RedisServer, text: string): Promise<LoadedCode> {
    const { name, library } = new ServerCode(text)
    await server.command('FUNCTION', 'LOAD', 'REPLACE', library)
    return new LoadedCode(server, ['FCALL', name])
  }

  /** Loads code as a script, which begins anew at each call. */
  static async asScript(server: RedisServer, text: string): Promise<LoadedCode> {
    const { script } = new ServerCode(text)
    return new LoadedCode(server, ['EVALSHA', String(await server.command('SCRIPT', 'LOAD', script))])
  }

  /** Returns the answers to the operations, and last the hints. */
  async run(call: CallArguments): Promise<readonly Reply[]> {
    return answersIn((await this.on(call.all())) as Reply)
  }

  /** Returns the answer to any arguments: the number of keys, the keys and the rest. */
  async on(args: readonly string[]): Promise<unknown> {
    return this.#server.command(...this.#command, ...args)
  }
}
