import type { Reply } from './clients/connection.js'
import type { Answered, ServerCommands } from './clients/redis-link.js'

/** Time limit for replicas to confirm a write, in milliseconds. */
const PATIENCE = 1000

/** Why a write may be lost with the server. */
export interface Missed {
  readonly why: string
  readonly cause?: unknown
}

/** Checks whether enough replicas have the writes of servers. */
export class Replicas {
  readonly #least: number
  readonly #questions = new WeakMap<ServerCommands, Questions>()

  /** @param least minimum number of replicas. */
  constructor(least: number) {
    this.#least = least
  }

  /**
   * Waits until enough replicas have the writes of this call. Returns undefined if they have them, otherwise the
   * reason.
   */
  async missed({ server, epoch }: Answered): Promise<Missed | undefined> {
    const least = this.#least
    try {
      const reached = Number(await this.#ask(server))
      if (reached < least) return { why: `only ${reached} of ${least} replicas had it within ${PATIENCE} ms` }
      // `WAIT` covers only the writes of the connection over which it is sent.
      // mutant: replicas-of-another-connection
      if (server.epoch === epoch) return undefined
      return { why: `the connection broke before it was known whether ${least} replicas have it` }
    } catch (cause) {
      return { why: `it is not known whether ${least} replicas have it`, cause }
    }
  }

  #ask(server: ServerCommands): Promise<Reply> {
    let questions = this.#questions.get(server)
    if (!questions) this.#questions.set(server, (questions = new Questions(server, this.#least)))
    return questions.ask()
  }
}

/**
 * Sends `WAIT` to one server, one at a time. Until the server has answered, it executes nothing else that comes over
 * the connection. So all calls that need an answer meanwhile share the next `WAIT`.
 */
class Questions {
  readonly #server: ServerCommands
  readonly #words: readonly string[]
  /** Settles when the current `WAIT` is answered. */
  #asked: Promise<unknown> = Promise.resolve()
  #next: Promise<Reply> | undefined

  constructor(server: ServerCommands, least: number) {
    this.#server = server
    this.#words = ['WAIT', String(least), String(PATIENCE)]
  }

  ask(): Promise<Reply> {
    this.#next ??= this.#asked.then(() => {
      this.#next = undefined
      const answer = this.#server.send(this.#words)
      this.#asked = answer.catch(() => undefined)
      return answer
    })
    return this.#next
  }
}
