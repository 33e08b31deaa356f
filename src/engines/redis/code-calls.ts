import { RedisReplyError } from './clients/connection.js'
import type { Answered, RedisLink } from './clients/redis-link.js'
import type { ServerCode } from './lua/server-code.js'

/**
 * Called when a call has to be repeated, with the promise of its answer. Later calls must wait until it is executed.
 * Calls that are under way fail like this one, and keep their order.
 */
type Again = (answered: Promise<Answered>) => Promise<Answered>

const unheld: Again = answered => answered

/**
 * Executes code on servers: as a function if they have functions (Redis 7, Valkey) and the login may load them, else as
 * a script. The server creates the functions of a library once. It compiles a script once, but creates its functions
 * again at each call, which takes longer than most operations. A call is one command, or more if a server does not know
 * the code yet.
 */
export class CodeCalls {
  readonly #link: RedisLink
  /** False once a server has rejected functions permanently. */
  #hasFunctions = true

  constructor(link: RedisLink) {
    this.#link = link
  }

  /**
   * Calls the code. Rejects as the link does.
   * @param args the number of keys, the keys and the arguments
   */
  async call(route: string, code: ServerCode, args: readonly string[], again = unheld): Promise<Answered> {
    if (!this.#hasFunctions) return this.#runScript(route, code, args, again)
    try {
      return await this.#link.call(route, ['FCALL', code.name, ...args])
    } catch (error) {
      if (isUnknownFunction(error)) return again(this.#loadAndCall(route, code, args))
      if (!this.#refuses(error)) throw error
    }
    return again(this.#runScript(route, code, args))
  }

  async #loadAndCall(route: string, code: ServerCode, args: readonly string[]): Promise<Answered> {
    // Sent together, so that calls keep their order.
    const loaded = this.#link.command(route, ['FUNCTION', 'LOAD', 'REPLACE', code.library])
    const called = this.#link.call(route, ['FCALL', code.name, ...args])
    const [{ reason }, outcome] = (await Promise.allSettled([loaded, called])) as [
      { reason?: unknown },
      PromiseSettledResult<Answered>,
    ]
    if (outcome.status === 'fulfilled') return outcome.value
    if (!isUnknownFunction(outcome.reason) && !this.#refuses(outcome.reason)) throw outcome.reason
    // A server with a full memory loads no function. On a cluster, another node may have loaded it.
    if (reason !== undefined) this.#refuses(reason)
    return this.#runScript(route, code, args)
  }

  async #runScript(
    route: string,
    code: ServerCode,
    args: readonly string[],
    again = unheld,
  ): Promise<Answered> {
    try {
      return await this.#link.call(route, ['EVALSHA', code.sha, ...args])
    } catch (error) {
      if (!(error instanceof RedisReplyError) || error.code !== 'NOSCRIPT') throw error
    }
    return again(this.#link.call(route, ['EVAL', code.script, ...args]))
  }

  /** Whether the server rejects functions, for now or permanently, but may execute the script. */
  #refuses(error: unknown): boolean {
    if (!(error instanceof RedisReplyError)) return false
    // In such a state, the server rejects every function, but in a script only the commands that need memory or write.
    // If the state ends at once, a later call may be executed before this one.
    if (FOR_NOW.has(error.code)) return true
    const isForGood = NO_SUCH_COMMAND.test(error.message)
    if (isForGood) this.#hasFunctions = false
    return isForGood
  }
}

/** Error codes for a full memory, too few replicas, or data that could not be saved. */
const FOR_NOW: ReadonlySet<string> = new Set(['OOM', 'NOREPLICAS', 'MISCONF'])

/**
 * The errors of servers without functions, among them hosted ones, and of servers that forbid them. Their texts differ.
 */
const NO_SUCH_COMMAND =
  /unknown (?:sub)?command|permissions to run|unsupported|not (?:allowed|available|implemented|supported)/i

function isUnknownFunction(error: unknown): boolean {
  return error instanceof RedisReplyError && error.message.includes('Function not found')
}
