import { RedisReplyError } from './clients/connection.js'
import type { Answered, RedisLink } from './clients/redis-link.js'
import type { ServerCode } from './lua/server-code.js'

/**
 * Called when a call has to be made again, with the promise of that. Later calls must wait for it to be executed after
 * this one; calls that are under way fail like this one, and keep their order.
 */
type Again = (answered: Promise<Answered>) => Promise<Answered>

const unheld: Again = answered => answered

/**
 * Has servers execute code: as a function where they have functions (Redis 7, Valkey) and the login may load them, else
 * as a script. The server makes a function once, but compiles a script once and makes all that is in it again at each
 * call, which takes it longer than most operations. A call is one command, and more where a server does not know the code.
 */
export class CodeCalls {
  readonly #link: RedisLink
  /** Whether no server has refused functions so far. */
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
    // For want of memory a server loads no function. Elsewhere on a cluster the function may have been loaded.
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

  /** Whether the server refuses functions, for now or for good, but may execute the script. */
  #refuses(error: unknown): boolean {
    if (!(error instanceof RedisReplyError)) return false
    // It refuses every function then, but of a script only the commands that need memory, or write. If that is over at
    // once, a call can be executed after one that was sent behind it.
    if (FOR_NOW.has(error.code)) return true
    const isForGood = NO_SUCH_COMMAND.test(error.message)
    if (isForGood) this.#hasFunctions = false
    return isForGood
  }
}

/** A full memory, too few replicas, or data that could not be saved. */
const FOR_NOW: ReadonlySet<string> = new Set(['OOM', 'NOREPLICAS', 'MISCONF'])

/** Servers without functions, among them hosted ones, say it in their own ways, and so does one that forbids them. */
const NO_SUCH_COMMAND =
  /unknown (?:sub)?command|permissions to run|unsupported|not (?:allowed|available|implemented|supported)/i

function isUnknownFunction(error: unknown): boolean {
  return error instanceof RedisReplyError && error.message.includes('Function not found')
}
