import type { Reply } from './clients/connection.js'
import type { Answered, ServerCommands } from './clients/redis-link.js'

/** How long replicas may take to have what they must, in milliseconds. */
const PATIENCE = 1000

/** Why what was done may be lost with the server. */
export interface Missed {
  readonly why: string
  readonly cause?: unknown
}

/** Whether enough replicas have what servers have done. */
export class Replicas {
  readonly #least: number
  readonly #questions = new WeakMap<ServerCommands, Questions>()

  /** @param least minimum number of replicas. */
  constructor(least: number) {
    this.#least = least
  }

  /** Waits until enough replicas have what was written with this answer, and says why not when they have not. */
  async missed({ server, epoch }: Answered): Promise<Missed | undefined> {
    const least = this.#least
    try {
      const reached = Number(await this.#ask(server))
      if (reached < least) return { why: `only ${reached} of ${least} replicas had it within ${PATIENCE} ms` }
      // A server answers for what came over the connection on which it is asked.
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
 * What is asked of one server: one question at a time. The server executes nothing else that comes over the connection
 * until it has answered, so all calls that have to ask meanwhile share the next question.
 */
class Questions {
  readonly #server: ServerCommands
  readonly #words: readonly string[]
  /** Settles when the question that is under way is answered. */
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
